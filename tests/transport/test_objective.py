import ot
import pytest
import torch
from torch import Tensor

from towpath.transport.line import transport_on_line
from towpath.transport.objective import (
    Measure,
    dual_step,
    effective_sample_size,
    mass,
    mean_one,
    payoff_slopes,
    transport_gap,
    weight_payoff,
    weighted_risk,
)


def numbers(*shape: int, seed: int = 0, low: float = 0.1, high: float = 2.0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=rng, dtype=torch.float64) * (high - low) + low).requires_grad_()


SCOPE = torch.tensor([[False, True, True], [False, True, True]])
W, L, G, R = (numbers(2, 3, seed=s) for s in range(4))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda w: mean_one(w, SCOPE), [W]),
        (lambda w: mass(w, SCOPE), [W]),
        (lambda w: mass(w, SCOPE, "literal"), [W]),
        (weighted_risk, [L, W]),
        (lambda g, w, h, r: transport_gap(g, mass(w, SCOPE), h, mass(r, SCOPE)), [G, W, L, R]),
        (lambda w, loss, g: weight_payoff(mean_one(w, SCOPE), loss, g, 0.7), [W, L, G]),
        (lambda w, loss, g: weight_payoff(w, loss, g, 0.7), [W, L, G]),
        (lambda w: effective_sample_size(w, SCOPE), [W]),
    ],
)
def test_gradients(function, arguments) -> None:
    assert torch.autograd.gradcheck(function, arguments)


def test_measures_by_hand() -> None:
    weights = torch.tensor([[9.0, 1.0, 3.0]])
    reweight_mask = torch.tensor([[False, True, True]])
    assert mass(weights, reweight_mask).tolist() == [[0.0, 0.25, 0.75]]
    assert mass(weights, reweight_mask, "literal").tolist() == [[0.0, 0.5, 1.5]]
    assert mass(torch.zeros(1, 3), reweight_mask).tolist() == [[0.0, 0.0, 0.0]]
    assert (
        transport_gap(weights, mass(weights, reweight_mask), weights, torch.tensor([[0.0, 1.0, 0.0]])) == 1.5
    )


def test_equal_weights_are_exactly_one() -> None:
    assert (mean_one(torch.ones(4096, 4), torch.ones(4096, 4, dtype=torch.bool)) == 1).all()


def test_effective_sample_size_of_equal_weights_is_everything() -> None:
    assert effective_sample_size(torch.full((5, 2), 3.0), torch.ones(5, 2, dtype=torch.bool)) == 1


def test_the_penalty_never_falls_below_zero() -> None:
    assert dual_step(0.01, gap=0.0, target=5.0, rate=0.1) == 0


# The inner problem has a closed form:
#     min over P_w of E_w[l] + c W1(P_w, P_f) = E_f[ min over z' of l(z') + c |z - z'| ]


def mirror_descent(loss: Tensor, deployed: Tensor, penalty: float, best_critic, steps: int) -> float:
    """The smallest value of the inner problem that w reaches against the critic's best responses."""
    inside = torch.ones_like(loss).bool()
    logits = torch.zeros_like(loss, requires_grad=True)
    lowest = float("inf")
    for step in range(steps):
        weights = torch.softmax(logits, 0) * len(loss)
        masses = mass(weights, inside).detach()
        critic = best_critic(masses)
        value = float((masses * loss).sum() + penalty * transport_gap(critic, masses, critic, deployed))
        lowest = min(lowest, value)
        payoff = weight_payoff(mean_one(weights, inside), loss, critic, penalty)
        # In the mirror of the softmax the payoff's slope in the weights is the step.
        slope = torch.autograd.grad(payoff, weights)[0] * len(loss)
        with torch.no_grad():
            logits -= 4 / max(1, penalty) / (1 + step) ** 0.6 * slope
    return lowest


def closed_form(loss: Tensor, deployed: Tensor, penalty: float, distance: Tensor) -> float:
    return float((deployed * (loss[None, :] + penalty * distance).amin(1)).sum())


def problem(dimensions: int, points: int = 40) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(3)
    places = torch.rand(points, dimensions, generator=rng, dtype=torch.float64)
    loss = torch.rand(points, generator=rng, dtype=torch.float64)
    shown = torch.zeros(points, dtype=torch.float64)
    shown[:8] = 1 / 8
    return places, loss, shown, torch.cdist(places, places)


@pytest.mark.parametrize(
    ("penalty", "steps"), [(1e-3, 1000), (0.3, 1000), (1.0, 1000), (5.0, 1000), (100.0, 2500)]
)
def test_w_reaches_the_closed_form_on_the_line(penalty: float, steps: int) -> None:
    places, loss, shown, distance = problem(1)
    x = places[:, 0]

    def critic(masses: Tensor) -> Tensor:
        return transport_on_line(x, masses, shown).critic(x)

    reached = mirror_descent(loss, shown, penalty, critic, steps)
    expected = closed_form(loss, shown, penalty, distance)
    assert expected - 1e-9 <= reached <= expected + 2e-3 * max(1.0, penalty)


@pytest.mark.parametrize("penalty", [0.3, 1.0])
def test_w_reaches_the_closed_form_in_the_plane(penalty: float) -> None:
    _, loss, shown, distance = problem(2)

    def critic(masses: Tensor) -> Tensor:
        _, log = ot.emd(masses / masses.sum(), shown / shown.sum(), distance, log=True)
        # One potential for both sides: the largest 1-Lipschitz function below the dual's second potential.
        return (distance - log["v"][None, :]).amin(1)

    reached = mirror_descent(loss, shown, penalty, critic, 600)
    expected = closed_form(loss, shown, penalty, distance)
    assert expected - 1e-9 <= reached <= expected + 2e-3


def test_the_limits_of_the_penalty() -> None:
    """Free, all mass goes to the easiest pair; dear, it stays on what is shown."""
    _, loss, shown, distance = problem(1)
    assert closed_form(loss, shown, 1e-9, distance) == pytest.approx(float(loss.min()), abs=1e-6)
    assert closed_form(loss, shown, 1e6, distance) == pytest.approx(float((shown * loss).sum()), abs=1e-6)


def test_the_literal_game_keeps_only_what_is_already_shown_and_easy() -> None:
    """Raw sums and a critic bounded by B: w ends at shown * 1[l < penalty * B] (and so degenerates)."""
    rng = torch.Generator().manual_seed(0)
    loss, shown = torch.rand(60, generator=rng), (torch.rand(60, generator=rng) < 0.5).float()
    penalty, bound = 0.5, 1.2
    loss = torch.where((loss - penalty * bound).abs() < 0.05, 0.1, loss)  # no pair on the fence
    weights = torch.full((60,), 0.5)
    for step in range(4000):
        critic = bound * torch.sign(weights - shown)  # ascends sum w g - sum shown g within |g| <= bound
        live = weights.clone().requires_grad_()
        slope = torch.autograd.grad(weight_payoff(live, loss, critic, penalty), live)[0] * 60
        weights = (weights - 0.5 / (1 + step) ** 0.7 * slope).clamp(0, 1)
    torch.testing.assert_close(weights, shown * (loss < penalty * bound), atol=0.01, rtol=0)


@pytest.mark.parametrize("measure", ["normalised", "literal"])
def test_the_slopes_of_w_are_those_of_its_payoff(measure: Measure) -> None:
    rng = torch.Generator().manual_seed(3)
    loss, critic = torch.rand(2, 5, 4, generator=rng)
    weights = (0.2 + torch.rand(5, 4, generator=rng)).requires_grad_()
    reweight_mask = torch.rand(5, 4, generator=rng) < 0.7
    level = (
        mean_one(weights, reweight_mask)
        if measure == "normalised"
        else torch.where(reweight_mask, weights, 1.0)
    )
    (expected,) = torch.autograd.grad(weight_payoff(level, loss, critic, 0.8), weights)
    slopes = payoff_slopes(weights.detach(), loss, critic, 0.8, reweight_mask, measure)
    torch.testing.assert_close(slopes, expected)
