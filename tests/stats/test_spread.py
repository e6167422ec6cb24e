"""Means with their spread, by hand."""

import pytest

from towpath.stats.estimate import Estimate
from towpath.stats.spread import DEVIATION, deviation_of, mean_and_deviation, over_seeds, scaled, t_interval


def test_one_standard_deviation_to_either_side() -> None:
    estimate = over_seeds([1.0, 2.0, 3.0])
    assert (estimate.mean, estimate.low, estimate.high, estimate.n) == (2.0, 1.0, 3.0, 3)
    assert estimate.how == DEVIATION
    assert deviation_of(estimate) == 1.0


def test_one_seed_has_no_interval() -> None:
    estimate = over_seeds([2.0])
    assert (estimate.mean, estimate.width, estimate.n) == (2.0, 0.0, 1)
    assert deviation_of(estimate) is None


def test_students_interval() -> None:
    estimate = t_interval([1.0, 2.0, 3.0])
    assert estimate.high - 2.0 == pytest.approx(4.302653 / 3**0.5, rel=1e-6)
    assert deviation_of(estimate) is None


def test_another_unit_keeps_everything_else() -> None:
    estimate = scaled(Estimate(0.5, 0.25, 0.75, 9, "by hand", 0.9), 100)
    assert estimate == Estimate(50, 25, 75, 9, "by hand", 0.9)
    assert deviation_of(scaled(mean_and_deviation(0.1, 0.03, n=3), 100)) == 3.0
