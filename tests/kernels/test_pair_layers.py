"""The layers over pairs as one operation, against the same layers under autograd."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from towpath.kernels.pair_layers import Layer, Parts, catalogue_scores, pair_scores

pytest.importorskip("numba", reason="the compiled kernels need the extra `fast`")


def made(widths: tuple[int, ...], batch: int = 9) -> tuple[Parts, list[Layer]]:
    """Parts of 7 users and 11 items, 3 items for each of a batch, and layers of these widths."""
    rng = torch.Generator().manual_seed(0)
    user, item = (torch.randn(n, widths[0], generator=rng).requires_grad_() for n in (7, 11))
    bias = torch.randn(widths[0], generator=rng).requires_grad_()
    who, places = torch.randint(7, (batch,), generator=rng), torch.randint(11, (batch, 3), generator=rng)
    shares = (torch.rand(n, generator=rng) for n in (7, 11))
    layers = [
        Layer(
            torch.randn(n, m, generator=rng).requires_grad_(), torch.randn(n, generator=rng).requires_grad_()
        )
        for m, n in zip(widths, (*widths[1:], 1), strict=True)
    ]
    return Parts(user, item, bias, who, places, *shares), layers


def plain(parts: Parts, layers: list[Layer]) -> tuple[Tensor, Tensor]:
    """The same by torch alone."""
    shifted = parts.user if parts.bias is None else parts.user + parts.bias
    activation = torch.relu(shifted[parts.who][:, None] + parts.item[parts.places])
    for weight, bias in layers[:-1]:
        activation = torch.relu(activation @ weight.T + bias)
    norm = torch.zeros(())
    if parts.user_shares is not None and parts.item_shares is not None:
        norm = parts.user.square().sum(1) @ parts.user_shares + parts.item.square().sum(1) @ parts.item_shares
    return (activation @ layers[-1].weight.T + layers[-1].bias)[..., 0], norm


def gradients(found: tuple[Tensor, Tensor], parts: Parts, layers: list[Layer]) -> list[Tensor]:
    """Those of a number that depends on every score and on the norm."""
    scores, norm = found
    parameters = [parts.user, parts.item, *(tensor for layer in layers for tensor in layer)]
    parameters += [] if parts.bias is None else [parts.bias]
    slopes = torch.linspace(-1, 2, scores.numel()).view(scores.shape)
    value = (scores * slopes).mean() + (0.3 * norm if norm.requires_grad else 0)
    return list(torch.autograd.grad(value, parameters))


# Widths of whole tiles and others; one is the output layer alone. Batches of less than a tile, of several
# blocks of pairs, and of so many that their gradients are added up in groups.
@pytest.mark.parametrize("widths", [(5,), (6, 3), (40, 34, 4), (33, 3, 35), (32, 16, 16)])
@pytest.mark.parametrize("batch", [1, 9, 70, 700])
def test_scores_and_gradients_are_those_of_autograd(widths: tuple[int, ...], batch: int) -> None:
    parts, layers = made(widths, batch)
    ours, theirs = pair_scores(parts, layers), plain(parts, layers)
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)
    both = gradients(ours, parts, layers), gradients(theirs, parts, layers)
    for own, other in zip(*both, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)


def test_without_bias_and_shares_there_are_only_scores() -> None:
    parts, layers = made((6, 3))
    parts = Parts(parts.user, parts.item, None, parts.who, parts.places)
    ours, theirs = pair_scores(parts, layers), plain(parts, layers)
    assert float(ours[1].detach()) == 0
    both = gradients((ours[0], torch.zeros(())), parts, layers), gradients(theirs, parts, layers)
    for own, other in zip(*both, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)


def test_scores_without_gradients_are_the_same_floats() -> None:
    parts, layers = made((40, 20), 70)
    with torch.no_grad():
        alone = pair_scores(parts, layers)
    for own, other in zip(pair_scores(parts, layers), alone, strict=True):
        assert torch.equal(own.detach(), other)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
def test_threads_do_not_change_a_float(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towpath.kernels.threads._WORTH_A_THREAD", 1)
    found = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        parts, layers = made((40, 20, 5), 700)
        scores, norm = pair_scores(parts, layers)
        with torch.no_grad():
            every = catalogue_scores(parts.user, parts.item, layers)
        found.append([scores, norm, every, *gradients((scores, norm), parts, layers)])
    for others in found[1:]:
        assert all(torch.equal(own, other) for own, other in zip(found[0], others, strict=True))


def whole_catalogue(parts: Parts, layers: list[Layer]) -> Tensor:
    """Every user with every item, by torch alone."""
    every = torch.arange(11).expand(7, -1)
    return plain(Parts(parts.user, parts.item, None, torch.arange(7), every), layers)[0]


@pytest.mark.parametrize("widths", [(5,), (6, 3), (6, 40, 3), (33, 20), (8, 17, 18)])
def test_the_whole_catalogue_is_every_pair(widths: tuple[int, ...]) -> None:
    parts, layers = made(widths)
    with torch.no_grad():
        found = catalogue_scores(parts.user, parts.item, layers)
        torch.testing.assert_close(found, whole_catalogue(parts, layers), rtol=1e-4, atol=1e-4)


def test_a_catalogue_of_several_blocks_is_scored_whole() -> None:
    parts, layers = made((20, 10))
    with torch.no_grad():
        many = torch.cat([parts.item] * 30)  # 330 items: three blocks and a part of one
        found = catalogue_scores(parts.user, many, layers)
        whole = whole_catalogue(parts, layers).repeat(1, 30)
        torch.testing.assert_close(found, whole, rtol=1e-4, atol=1e-4)


# Torch scores doubles, in tiles of a part of a row, of a row, and of all.
@pytest.mark.parametrize("pairs", [4, 12, 4096])
def test_doubles_are_scored_in_doubles(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towpath.kernels.pair_layers._PAIRS_AT_ONCE", pairs)
    parts, layers = made((6, 3))
    parts = parts._replace(user=parts.user.double(), item=parts.item.double())
    layers = [Layer(weight.double(), bias.double()) for weight, bias in layers]
    with torch.no_grad():
        found = catalogue_scores(parts.user, parts.item, layers)
        torch.testing.assert_close(found, whole_catalogue(parts, layers), rtol=1e-12, atol=1e-12)


def test_a_batch_of_nobody_has_no_scores_and_no_gradients() -> None:
    parts, layers = made((4, 2), 0)
    scores, _ = pair_scores(parts, layers)
    assert scores.shape == (0, 3)
    assert torch.autograd.grad(scores.sum(), parts.item)[0].abs().sum() == 0


def test_weights_that_the_penalty_shrank_to_nothing_are_zero_and_small_ones_are_not() -> None:
    # Left as they are they would become numbers below 1e-38, with which processors are ten times slower.
    parts, (layer, output) = made((6, 3))
    output = Layer(torch.full_like(output.weight, 1e19), torch.tensor([0.5]))
    for small, counts in ((1e-21, False), (1e-19, True)):
        layers = [Layer(torch.full_like(layer.weight, small), torch.zeros_like(layer.bias)), output]
        with torch.no_grad():
            pairs, catalogue = pair_scores(parts, layers)[0], catalogue_scores(parts.user, parts.item, layers)
        assert bool((pairs > 0.6).any()) == bool((catalogue > 0.6).any()) == counts
