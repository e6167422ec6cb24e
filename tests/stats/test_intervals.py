"""Intervals: values by hand, laws, and how often they hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from towpath.rng import Rng
from towpath.stats.estimate import Estimate
from towpath.stats.intervals import (
    RatioRows,
    bernstein_interval,
    betting_interval,
    betting_lower,
    bootstrap_interval,
    gamma_interval,
    normal_interval,
)

ONES = np.ones(4)


def test_the_normal_interval_by_hand() -> None:
    found = normal_interval(np.array([0.0, 1.0, 0.0, 1.0]))
    half = 1.959964 * 0.5773503 / 2  # z s / sqrt(n), s^2 = 1/3
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5 - half, 0.5 + half), abs=1e-6)
    assert found.n == 4
    assert found.how == "95% normal interval"


def test_one_row_has_no_normal_interval() -> None:
    found = normal_interval(np.array([1.0]))
    assert (found.low, found.high) == (-np.inf, np.inf)


def test_the_bernstein_interval_is_the_published_one_on_each_side() -> None:
    values = np.array([0, 0, 1, 0, 2, 0, 0, 1, 0, 0.0])
    # offpolicy's worked terms are for delta = .05 on one side, which is level .90 on two.
    found = bernstein_interval(values, 0, 20, level=0.9)
    length = np.log(40)
    half = np.sqrt(2 * 0.488889 * length / 10) + 7 * 20 * length / 27
    assert found.high == pytest.approx(min(20, 0.4 + half), abs=1e-5)
    assert found.low == 0


def test_the_gamma_interval_with_equal_weights_is_the_exact_poisson_one() -> None:
    counts = np.zeros(1000)
    counts[:7] = 1
    found = gamma_interval(np.ones(1000), counts)
    low, high = stats.chi2.ppf(0.025, 14) / 2000, stats.chi2.ppf(0.975, 16) / 2000
    assert (found.mean, found.low, found.high) == pytest.approx((0.007, low, high), rel=1e-12)


def test_the_gamma_interval_without_events_still_has_an_upper_end() -> None:
    found = gamma_interval(np.array([1.0, 3.0]), np.zeros(2))
    assert (found.mean, found.low) == (0, 0)
    assert found.high == pytest.approx(stats.expon.ppf(0.975) * 1.5)


def test_a_ratio_is_renormalised_in_every_resample() -> None:
    weights = np.array([1.0, 1, 1, 1, 1, 1, 1, 50])
    rows = RatioRows(np.zeros(8), weights * 1.0, weights)
    found = bootstrap_interval(rows, Rng(0).numpy("test"))
    assert (found.mean, found.low, found.high) == pytest.approx((1, 1, 1))  # all rewards are one


def test_the_linear_part_has_the_statistic_as_its_mean() -> None:
    rng = Rng(1).numpy("test")
    rows = RatioRows(rng.random(50), rng.random(50), rng.random(50) + 0.1)
    assert rows.linearised().mean() == pytest.approx(rows.value)
    plain = RatioRows(rows.base, rows.numerator, np.ones(50))
    assert np.array_equal(plain.linearised(), rows.base + rows.numerator)


def test_the_bootstrap_of_a_mean_is_near_the_normal_interval() -> None:
    values = Rng(2).numpy("test").random(400)
    drawn = bootstrap_interval(RatioRows(0 * values, values, 1 + 0 * values), Rng(3).numpy("b"))
    normal = normal_interval(values)
    assert (drawn.low, drawn.high) == pytest.approx((normal.low, normal.high), abs=0.005)


def test_betting_on_certain_rows_finds_the_mean() -> None:
    assert betting_lower(np.full(20_000, 0.3), 0.025) == pytest.approx(0.3, abs=0.002)
    assert betting_lower(np.zeros(10), 0.025) == 0


def test_a_lower_bound_by_betting_ignores_how_large_the_largest_value_is() -> None:
    values = Rng(4).numpy("test").random(1000)
    spoiled = np.concatenate([values, [1e6]])
    assert betting_lower(spoiled, 0.025) > 0.9 * betting_lower(values, 0.025)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40), st.floats(0.01, 100))
def test_bounded_intervals_hold_the_mean_and_scale_with_the_values(values: list[float], scale: float) -> None:
    rows = np.array(values)
    for found in (bernstein_interval(rows, 0, 1), betting_interval(rows, 0, 1)):
        assert found.low <= found.mean + 1e-9
        assert found.mean <= found.high + 1e-9
    scaled = bernstein_interval(scale * rows, 0, scale)
    assert scaled.high == pytest.approx(scale * bernstein_interval(rows, 0, 1).high, rel=1e-9, abs=1e-12)


def _share_that_covers(name: str, repeats: int = 200) -> tuple[float, float]:
    """Coverage and mean width for IPS of a skewed log with one reward in fifty."""
    covered, widths = 0, []
    logging = np.array([0.55, 0.25, 0.1, 0.06, 0.04])
    click = np.array([0.01, 0.02, 0.03, 0.02, 0.02])
    target = np.full(5, 0.2)
    truth = float(target @ click)
    for seed in range(repeats):
        rng = Rng(seed).numpy("coverage")
        actions = rng.choice(5, size=1000, p=logging)
        rewards = (rng.random(1000) < click[actions]).astype(float)
        weights = (target / logging)[actions]
        found = _interval(name, weights, rewards, rng)
        covered += found.covers(truth)
        widths.append(found.width)
    return covered / repeats, float(np.mean(widths))


def _interval(name: str, weights: np.ndarray, rewards: np.ndarray, rng: np.random.Generator) -> Estimate:
    values = weights * rewards
    if name == "gamma":
        return gamma_interval(weights, rewards)
    if name == "betting":
        return betting_interval(values, 0, 5)
    if name == "bernstein":
        return bernstein_interval(values, 0, 5)
    return normal_interval(values)


def test_the_guaranteed_intervals_cover_and_the_normal_one_is_too_short() -> None:
    found = {name: _share_that_covers(name) for name in ("gamma", "betting", "bernstein", "normal")}
    coverage = {name: share for name, (share, _) in found.items()}
    width = {name: mean for name, (_, mean) in found.items()}
    # 200 repeats of nominal 95 %: two standard errors are 3 points.
    assert coverage["gamma"] >= 0.94
    assert coverage["betting"] >= 0.95
    assert coverage["bernstein"] >= 0.95
    assert coverage["normal"] < coverage["gamma"]
    assert width["normal"] < width["gamma"] < width["betting"] < width["bernstein"]
