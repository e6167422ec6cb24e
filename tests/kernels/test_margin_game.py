import pytest
import torch
from torch import Tensor

from towpath.kernels.margin_game import MarginPairs, level_weights, line_slopes
from towpath.transport.line import transport_on_line
from towpath.transport.objective import mass, mean_one, payoff_slopes
from towpath.transport.weights import bounded_weight

pytest.importorskip("numba", reason="the compiled kernels need the extra `fast`")

BOUNDS = (0.3, 2.0)


def made(seed: int, shift: float = 0.0, spread: float = 1.0) -> tuple[MarginPairs, Tensor]:
    """Pairs and a line; on a grid for even seeds, so that there are ties."""
    rng = torch.Generator().manual_seed(seed)
    margins = torch.randn(50, 6, generator=rng) - shift
    margins = margins if seed % 2 else (4 * margins).round() / 4
    losses, mask = 2 * torch.rand(50, 6, generator=rng), torch.rand(50, 6, generator=rng) > 0.2
    return MarginPairs(margins, losses, mask), spread * torch.randn(3, generator=rng)


def weights_of(pairs: MarginPairs, line: Tensor) -> Tensor:
    margins = pairs.margins.double()
    return bounded_weight(line[0] + line[1] * margins + line[2] * margins.clamp(min=0), *BOUNDS)


def slopes_in_torch(pairs: MarginPairs, line: Tensor, penalty: float) -> Tensor:
    """What the game does without compiled loops: the whole line sorted, and autograd through w."""
    line = line.double().requires_grad_()
    weights, margins = weights_of(pairs, line), pairs.margins.double()
    shown = mass((margins >= 0).double(), pairs.mask)
    measures = (mass(weights.detach(), pairs.mask), shown)
    critic = transport_on_line(margins.reshape(-1), *(m.reshape(-1) for m in measures)).at_points
    slopes = payoff_slopes(
        weights.detach(), pairs.losses.double(), critic.view(margins.shape), penalty, pairs.mask
    )
    (found,) = torch.autograd.grad((weights * slopes).sum(), line)
    return found


@pytest.mark.parametrize("penalty", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("shift", [-3.0, 0.0, 1.5])  # nearly all shown, half of them, few
@pytest.mark.parametrize("spread", [0.3, 6.0])  # weights within their bounds, and many at them
def test_w_moves_as_it_does_in_plain_torch(penalty: float, shift: float, spread: float) -> None:
    for seed in range(6):
        pairs, line = made(seed, shift, spread)
        ours = line_slopes(pairs, line, BOUNDS, penalty)
        assert ours is not None
        theirs = slopes_in_torch(pairs, line, penalty).float()
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=2e-6)


def test_weights_have_mean_one_where_w_reweighs_and_are_one_elsewhere() -> None:
    pairs, line = made(1)
    ours = level_weights(pairs, line, BOUNDS)
    torch.testing.assert_close(ours, mean_one(weights_of(pairs, line), pairs.mask).float())
    assert (ours[~pairs.mask] == 1).all()


def test_where_nothing_is_shown_w_has_nothing_to_move_towards() -> None:
    pairs, line = made(1, shift=100.0)
    assert line_slopes(pairs, line, BOUNDS, 1.0) is None


def test_equal_bounds_leave_w_where_it_is() -> None:
    pairs, line = made(1)
    slopes = line_slopes(pairs, line, (1.0, 1.0), 1.0)
    assert slopes is not None
    assert slopes.tolist() == [0, 0, 0]
    assert (level_weights(pairs, line, (1.0, 1.0)) == 1).all()
