"""Theorem 3: the closed form is the optimum, and for large lambda it is the counterfactual risk."""

import numpy as np
import pytest
from scipy.optimize import linprog

from towpath.bandit.estimators import LoggedRows, Scales, snips
from towpath.bandit.transport import (
    constrained_objective,
    deployment_mass,
    lipschitz_constant,
    priced_objective,
    priced_transport_objective,
    transport_objective,
)
from towpath.rng import Rng

Z = np.array([0.0, 1.0, 3.0])
DISTANCES = np.abs(Z[:, None] - Z)
LOSSES = np.array([1.0, 0.2, 0.0])
MASS = np.array([0.5, 0.5, 0.0])


def by_linear_programme(losses: np.ndarray, mass: np.ndarray, distances: np.ndarray, **bound: float) -> float:
    """min over couplings of P_w and P_f: either charged lam, or with cost at most rho."""
    n = len(losses)
    cost = np.repeat(losses, n)  # the coupling (i, j) moves P_w(i) to P_f(j)
    limits = {}
    if "lam" in bound:
        cost = cost + bound["lam"] * distances.ravel()
    else:
        limits = {"A_ub": distances.ravel()[None, :], "b_ub": [bound["rho"]]}
    columns = np.kron(np.ones((1, n)), np.eye(n))
    return float(linprog(cost, A_eq=columns, b_eq=mass, **limits).fun)


def case(seed: int, n: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = Rng(seed).numpy("case")
    points = rng.normal(size=(n, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    return rng.random(n), rng.dirichlet(np.ones(n)), distances


def test_worked_numbers() -> None:
    assert transport_objective(LOSSES, MASS, DISTANCES, 0.5) == pytest.approx(0.45)
    for lam in (0.8, 1.0, 100.0):
        assert transport_objective(LOSSES, MASS, DISTANCES, lam) == pytest.approx(0.6)
    assert lipschitz_constant(LOSSES, DISTANCES) == pytest.approx(0.8)
    assert constrained_objective(LOSSES, MASS, DISTANCES, 0.25) == pytest.approx(0.4)
    assert by_linear_programme(LOSSES, MASS, DISTANCES, rho=0.25) == pytest.approx(0.4)


@pytest.mark.parametrize("seed", range(5))
def test_the_closed_form_is_the_optimum_of_the_linear_programme(seed: int) -> None:
    losses, mass, distances = case(seed)
    for lam in (0.0, 0.1, 0.5, 2.0):
        found = transport_objective(losses, mass, distances, lam)
        assert found == pytest.approx(by_linear_programme(losses, mass, distances, lam=lam), abs=1e-8)
    for rho in (0.05, 0.3, 1.0):
        found = constrained_objective(losses, mass, distances, rho)
        assert found == pytest.approx(by_linear_programme(losses, mass, distances, rho=rho), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_beyond_the_lipschitz_constant_transport_is_snips_exactly(seed: int) -> None:
    losses, _, distances = case(seed)
    rng = Rng(seed).numpy("policy")
    chances, propensities = rng.random(12), rng.uniform(0.1, 1, 12)
    rows = LoggedRows(chances / propensities, 1 - losses, 0 * losses, 0 * losses)
    counterfactual = 1 - snips(rows, Scales()).value
    mass, steepest = deployment_mass(chances, propensities), lipschitz_constant(losses, distances)
    assert transport_objective(losses, mass, distances, steepest) == pytest.approx(counterfactual, rel=1e-12)
    assert transport_objective(losses, mass, distances, 0.9 * steepest) < counterfactual
    grid = [transport_objective(losses, mass, distances, lam) for lam in np.linspace(0, steepest, 20)]
    assert (np.diff(grid) >= -1e-12).all()  # rises with lambda, from the least loss of all
    assert grid[0] == pytest.approx(losses.min())


def test_two_losses_in_one_place_have_no_lipschitz_constant() -> None:
    assert lipschitz_constant(np.array([0.0, 1.0]), np.zeros((2, 2))) == np.inf


@pytest.mark.parametrize("price", [0.0, 0.3, 1.0])
def test_mass_off_the_log_at_a_price_is_ips_on_shifted_rewards(price: float) -> None:
    rng = Rng(3).numpy("price")
    weights, rewards = rng.uniform(0, 3, 30), rng.random(30)
    shifted = float((weights * (rewards - (1 - price))).mean())
    assert priced_objective(1 - rewards, weights, price) == pytest.approx(price - shifted)


@pytest.mark.parametrize("seed", range(3))
def test_priced_transport_rises_to_the_priced_counterfactual_risk(seed: int) -> None:
    losses, _, distances = case(seed)
    weights = Rng(seed).numpy("weights").uniform(0, 2, 12)
    steepest = lipschitz_constant(losses, distances)
    found = [priced_transport_objective(losses, weights, distances, lam, 0.5) for lam in (0, 0.3, steepest)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(losses.min() * weights.mean() + 0.5 * (1 - weights.mean()))
    assert found[2] == pytest.approx(priced_objective(losses, weights, 0.5), rel=1e-12)


def test_only_a_price_keeps_a_policy_on_the_log() -> None:
    """A policy that puts a thousandth on one logged row without loss: unpriced it looks perfect."""
    losses, distances = np.array([0.0, 1.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
    fled, stayed = np.array([1e-3, 0.0]), np.array([1.2, 0.4])
    for lam in (0.1, 1.0, 100.0):
        assert transport_objective(losses, fled / fled.sum(), distances, lam) == 0
        priced = [priced_transport_objective(losses, w, distances, lam, 1.0) for w in (fled, stayed)]
        assert priced[0] > 0.99 > 0.5 > priced[1]
