"""Bounds: every worked number, and that explicit ones hold in worlds whose truth is known."""

import numpy as np
import pytest

from towpath.diagnostics.bounds import (
    Bound,
    Sample,
    co_occurrence,
    divergence,
    empirical_bernstein_bound,
    empirical_divergence,
    importance_weighting_bound,
    inverse_kl,
    lower_order,
    pac_bayes_bound,
    proposition_1_bound,
    rademacher_complexity,
    sgns_divergence,
    theorem_1_terms,
    theorem_2_terms,
)
from towpath.errors import ConfigError
from towpath.rng import Rng

SAMPLE = Sample(risk=0.3, n=1000, max_weight=5, divergence=2, delta=0.05)
WEIGHTS = np.array([0.5, 0.5, 1, 2])


def test_divergences() -> None:
    p, q = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    assert divergence(q, p) == pytest.approx(1.64)
    assert divergence(p, q) == pytest.approx(2.7778, abs=1e-4)  # the paper's swapped form
    assert divergence(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == np.inf
    assert divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == 2
    assert empirical_divergence(WEIGHTS) == pytest.approx(1.375)
    assert empirical_divergence(np.full(9, 0.1)) == pytest.approx(1)


def test_importance_weighting() -> None:
    assert importance_weighting_bound(SAMPLE).value == pytest.approx(0.419452, abs=1e-6)
    assert importance_weighting_bound(SAMPLE, 20).value == pytest.approx(0.474781, abs=1e-6)
    paper = proposition_1_bound(SAMPLE, 20)
    assert paper.value == pytest.approx(1.203220, abs=1e-6)
    assert paper.vacuous
    assert lower_order(2.0, 100).terms["spread"] == pytest.approx(0.1)


def test_maurer_pontil() -> None:
    found = empirical_bernstein_bound(np.array([0, 0, 1, 0, 2, 0, 0, 1, 0, 0.0]), most=2)
    assert list(found.terms.values()) == pytest.approx([0.4, 0.600575, 1.912752], abs=1e-6)


def test_pac_bayes() -> None:
    assert pac_bayes_bound(SAMPLE, kl=0.125).value == pytest.approx(0.464615, abs=1e-6)
    assert pac_bayes_bound(SAMPLE, kl=0.125, uncovered=0.1).value == pytest.approx(0.564615, abs=1e-6)


def test_the_inverse_of_kl() -> None:
    assert inverse_kl(0.0, 0.1) == pytest.approx(1 - np.exp(-0.1))
    assert inverse_kl(0.3, 0.0) == 0.3
    assert inverse_kl(0.3, 1e9) == 1.0


def test_theorem_1() -> None:
    found = theorem_1_terms(WEIGHTS, np.array([1, 0, 1, 0.5]), n=1000)
    assert found.terms["C_n"] == pytest.approx(0.297886, abs=1e-6)
    assert found.terms["linear"] == pytest.approx(0.078876, abs=1e-6)
    assert found.kind == "order only"


def test_theorem_2_takes_the_maximum_over_the_multiplier() -> None:
    z = np.array([0.0, 1.0, 3.0])
    found = theorem_2_terms(np.array([1, 0.2, 0]), np.array([0.5, 0.5, 0]), np.abs(z[:, None] - z), rho=0.25)
    assert found.terms["transported risk"] == pytest.approx(0.4, abs=1e-6)
    assert found.kind == "order only"


def test_sgns() -> None:
    found = sgns_divergence(np.array([0.5]), np.array([0.01]))
    assert found.kl == pytest.approx(1.614463, abs=1e-6)
    assert found.two_js == pytest.approx(0.386375, abs=1e-6)
    assert found.joint_optimum == pytest.approx(1.135524, abs=1e-6)
    assert found.joint_optimum < found.kl  # the paper's inequality fails
    same = sgns_divergence(np.array([0.3, 0.7]), np.array([0.3, 0.7]))
    assert (same.kl, same.two_js) == pytest.approx((0, 0))


def test_the_gap_of_the_joint_optimum_is_two_js() -> None:
    """By minimising the two logistic risks themselves over one score."""
    a, b = 0.5, 0.01
    scores = np.linspace(-10, 10, 400_001)
    joint = (a + b) * np.logaddexp(0, -scores) + (2 - a - b) * np.logaddexp(0, scores)
    assert joint.min() == pytest.approx(sgns_divergence(np.array([a]), np.array([b])).joint_optimum, abs=1e-6)


def test_co_occurrence_of_independent_counts_is_one_half() -> None:
    counts = np.outer([2.0, 4.0], [1.0, 3.0])
    assert co_occurrence(counts, smoothing=0.0) == pytest.approx(np.full((2, 2), 0.5))


def test_rademacher_complexity_of_one_constant_function() -> None:
    found = rademacher_complexity(np.ones((1, 400)), Rng(0).numpy("signs"), draws=2000)
    assert found == pytest.approx(np.sqrt(2 / (np.pi * 400)), rel=0.05)


def test_bounds_shrink_with_rows_and_grow_with_divergence() -> None:
    values = [
        importance_weighting_bound(Sample(0.3, n, 5, d)).value for n, d in ((1000, 2), (4000, 2), (1000, 8))
    ]
    assert values[1] < values[0] < values[2]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="delta within 0 and 1"):
        Sample(0.3, 100, 1, delta=1.5)


def _bounds_of_a_world(seed: int) -> tuple[float, list[Bound]]:
    """The true risk on Q, and the explicit bounds from 300 rows of P, all constants being the true ones."""
    rng = Rng(seed).numpy("world")
    p, q = rng.dirichlet(np.full(8, 3.0)) * 0.8 + 0.025, rng.dirichlet(np.full(8, 3.0))
    p /= p.sum()
    chance = rng.random(8)
    drawn = rng.choice(8, size=300, p=p)
    losses = (rng.random(300) < chance[drawn]).astype(float)
    w = (q / p)[drawn]
    most = float((q / p).max())
    sample = Sample(float((w * losses).mean()), 300, most, divergence(q, p), delta=0.05)
    found = [
        importance_weighting_bound(sample),
        proposition_1_bound(sample, 1),
        empirical_bernstein_bound(w * losses, most),
        pac_bayes_bound(sample, kl=0.0),
    ]
    return float(q @ chance), found


def test_explicit_bounds_hold_in_at_least_95_of_100_worlds() -> None:
    held = np.zeros(4)
    for seed in range(100):
        truth, found = _bounds_of_a_world(seed)
        assert all(bound.kind == "explicit" for bound in found)
        held += [bound.value >= truth for bound in found]
    assert (held >= 95).all(), held


def test_a_bound_without_its_deviation_terms_does_not_hold() -> None:
    """So that the test above can fail: the weighted risk alone is below the truth half of the time."""
    below = 0
    for seed in range(100):
        truth, found = _bounds_of_a_world(seed)
        below += found[0].terms["weighted risk"] < truth
    assert below > 30
