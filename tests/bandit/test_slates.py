"""Slates: values by hand, and which reading is right in which world."""

import numpy as np
import pytest

from towpath.bandit.slates import Reading, slate_ips, slate_snips, slate_weights, to_slates
from towpath.rng import Rng

W = np.array([[2.0, 0.5], [0.5, 2.0]])
R = np.array([[1.0, 1.0], [0.0, 1.0]])


def test_values_by_hand() -> None:
    assert slate_ips(W, R, "independent").numerator.tolist() == [2.5, 2.0]
    assert slate_weights(W, "cascade").tolist() == [[2, 1], [0.5, 1]]
    assert slate_ips(W, R, "cascade").numerator.tolist() == [3.0, 1.0]
    assert slate_snips(W, R, "independent") == pytest.approx([2 / 2.5, 1.0])


def test_one_position_is_plain_ips() -> None:
    for reading in ("independent", "cascade"):
        assert slate_ips(W[:, :1], R[:, :1], reading).value == pytest.approx(1.0)


def test_rows_become_slates() -> None:
    table = to_slates(np.array([5.0, 6.0, 7.0]), np.array([0, 0, 1]), np.array([0, 1, 0]), empty=1.0)
    assert table.tolist() == [[5, 6], [7, 1]]


def _estimates(reading: Reading, cascades: bool) -> tuple[float, float, float]:
    """Mean estimate over seeds, its standard error, and the truth, with two items at two positions.

    Where it cascades, the second position is clicked only if item 0 stands on top.
    """
    logging, target = np.array([0.7, 0.3]), np.array([0.2, 0.8])
    click = np.array([0.5, 0.3])
    second = target[0] if cascades else 1.0
    truth = float(target @ click + second * (target @ click))
    found = []
    for seed in range(100):
        rng = Rng(seed).numpy("slates")
        shown = (rng.random((500, 2)) < logging[1]).astype(int)
        chance = click[shown]
        if cascades:
            chance[:, 1] *= shown[:, 0] == 0
        rewards = (rng.random((500, 2)) < chance).astype(float)
        found.append(slate_ips((target / logging)[shown], rewards, reading).value)
    return float(np.mean(found)), float(np.std(found, ddof=1) / 10), truth


@pytest.mark.parametrize(
    ("reading", "cascades"), [("independent", False), ("cascade", False), ("cascade", True)]
)
def test_the_right_reading_is_unbiased(reading: Reading, cascades: bool) -> None:
    mean, error, truth = _estimates(reading, cascades)
    assert abs(mean - truth) < 3.5 * error


def test_the_independent_reading_is_biased_where_users_cascade() -> None:
    mean, error, truth = _estimates("independent", cascades=True)
    assert abs(mean - truth) > 10 * error


def test_the_cascade_reading_costs_variance() -> None:
    assert _estimates("cascade", False)[1] > 1.2 * _estimates("independent", False)[1]
