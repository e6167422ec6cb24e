"""The layers over pairs as one operation, against the same layers under autograd."""

import pytest
import torch
from torch import Tensor

from towpath.kernels.pair_layers import Layer, catalogue_scores, pair_scores

pytest.importorskip("numba", reason="the compiled kernels need the extra `fast`")


def made(widths: tuple[int, ...], seed: int = 0) -> tuple[Tensor, Tensor, Tensor, list[Layer]]:
    """Parts of 7 users and 11 items, 3 items for each user, and layers of these widths."""
    rng = torch.Generator().manual_seed(seed)
    user, item = (torch.randn(n, widths[0], generator=rng).requires_grad_() for n in (7, 11))
    places = torch.randint(11, (7, 3), generator=rng)
    layers = [
        Layer(
            torch.randn(n, m, generator=rng).requires_grad_(), torch.randn(n, generator=rng).requires_grad_()
        )
        for m, n in zip(widths, (*widths[1:], 1), strict=True)
    ]
    return user, item, places, layers


def plain(user: Tensor, item: Tensor, places: Tensor, layers: list[Layer]) -> Tensor:
    activation = torch.relu(user[:, None] + item[places])
    for weight, bias in layers[:-1]:
        activation = torch.relu(activation @ weight.T + bias)
    return (activation @ layers[-1].weight.T + layers[-1].bias)[..., 0]


# Narrow and wide activations lie differently in memory; one layer is the output layer alone.
@pytest.mark.parametrize("widths", [(5,), (6, 3), (40, 34, 4), (33, 3, 35)])
@pytest.mark.parametrize("pairs_at_once", [1, 6, 4096])
def test_scores_and_gradients_are_those_of_autograd(
    widths: tuple[int, ...], pairs_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("towpath.kernels.pair_layers._PAIRS_AT_ONCE", pairs_at_once)
    user, item, places, layers = made(widths)
    parameters = [user, item, *(tensor for layer in layers for tensor in layer)]
    ours, theirs = pair_scores(user, item, places, layers), plain(user, item, places, layers)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    slopes = torch.linspace(-1, 2, ours.numel()).view(ours.shape)
    gradients = (torch.autograd.grad((scores * slopes).sum(), parameters) for scores in (ours, theirs))
    for own, other in zip(*gradients, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)


# One layer is left to torch; few and many outputs lie differently; tiles of a part of a row, and of several.
@pytest.mark.parametrize("widths", [(5,), (6, 3), (6, 40, 3), (33, 20), (8, 17, 18)])
@pytest.mark.parametrize("tile", [30, 200, 2**19])
def test_the_whole_catalogue_is_every_pair(
    widths: tuple[int, ...], tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("towpath.kernels.pair_layers._PAIRS_AT_ONCE", tile)
    user, item, _, layers = made(widths)
    with torch.no_grad():
        every = torch.arange(11).expand(7, -1)
        torch.testing.assert_close(
            catalogue_scores(user, item, layers), plain(user, item, every, layers), rtol=1e-4, atol=1e-4
        )


def test_doubles_are_scored_in_doubles() -> None:
    user, item, _, layers = made((6, 3))
    user, item, layers = user.double(), item.double(), [Layer(w.double(), b.double()) for w, b in layers]
    with torch.no_grad():
        every = torch.arange(11).expand(7, -1)
        torch.testing.assert_close(
            catalogue_scores(user, item, layers), plain(user, item, every, layers), rtol=1e-12, atol=1e-12
        )


def test_a_batch_of_nobody_has_no_scores_and_no_gradients() -> None:
    user, item, places, layers = made((4, 2))
    scores = pair_scores(user[:0], item, places[:0], layers)
    assert scores.shape == (0, 3)
    assert torch.autograd.grad(scores.sum(), item)[0].abs().sum() == 0
