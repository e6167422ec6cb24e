"""Slates: values by hand, and which reading is right in which world."""

from dataclasses import replace

import numpy as np
import pytest

from bandit_logs import ids
from towpath.bandit.log import BanditLog
from towpath.bandit.slate_evaluation import evaluate_slates
from towpath.bandit.slates import Reading, slate_ips, slate_snips, slate_weights, to_slates
from towpath.errors import ConfigError, DataError
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
    table = to_slates(np.array([5.0, 6.0, 7.0]), np.array([0, 0, 1]), np.array([0, 1, 0]), (2, 2), 1.0)
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


def slates_log(requests: int = 400, seed: int = 0) -> tuple[BanditLog, np.ndarray]:
    """Two items at two positions; the second is clicked only if item 0 stands on top. And the weights."""
    rng = Rng(seed).numpy("log")
    shown = (rng.random((requests, 2)) < 0.5).astype(int)
    chance = np.array([0.5, 0.3])[shown]
    chance[:, 1] *= shown[:, 0] == 0
    log = BanditLog(
        actions=shown.ravel(),
        positions=np.tile([0, 1], requests),
        rewards=(rng.random((requests, 2)) < chance).astype(float).ravel(),
        item_ids=ids(2),
        position_ids=("1", "2"),
        propensities=np.full(2 * requests, 0.5),
        requests=np.repeat(np.arange(requests), 2),
    )
    return log, np.array([0.4, 1.6])[shown].ravel()


def test_slates_of_a_log_by_hand() -> None:
    log, _ = slates_log(2)
    log = replace(log, rewards=R.ravel())
    found = evaluate_slates(log, W.ravel(), "cascade")
    assert found.ips["normal"].mean == found.ips["betting"].mean == pytest.approx(2.0)
    assert found.snips == pytest.approx((2 / 2.5, 1.0))
    assert (found.requests, found.positions, found.ess_share) == (2, 2, 1.0)
    assert found.to_json()["snips"]["value"] == pytest.approx(1.8)


def test_intervals_of_slates_hold_the_truth_where_users_cascade() -> None:
    """The target shows item 0 with chance .2: .34 clicks on top and .2 * .34 below."""
    truth, held = 0.34 + 0.2 * 0.34, dict.fromkeys(("betting", "normal", "bootstrap"), 0)
    for seed in range(40):
        for name, one in evaluate_slates(*slates_log(seed=seed), "cascade").ips.items():
            held[name] += one.covers(truth)
            assert 0 <= one.low <= one.high <= 2
    assert held["betting"] >= 38
    assert min(held.values()) >= 34
    biased = [evaluate_slates(*slates_log(seed=seed), "independent").ips["normal"] for seed in range(40)]
    assert sum(one.covers(truth) for one in biased) < 20


def test_what_is_no_slate_is_refused() -> None:
    log, weights = slates_log(3)
    with pytest.raises(DataError, match="--request-col"):
        evaluate_slates(replace(log, requests=None), weights, "cascade")
    with pytest.raises(DataError, match="several \\(first: position '1' of the request in row 1"):
        evaluate_slates(replace(log, requests=np.array([0, 0, 0, 1, 2, 2])), weights, "independent")
    gap = replace(log, requests=np.array([0, 0, 1, 1, 2, 3]))
    with pytest.raises(DataError, match="1 of 4 requests have gaps"):
        evaluate_slates(gap, weights, "cascade")
    assert evaluate_slates(gap, weights, "independent").requests == 4
    with pytest.raises(ConfigError, match="did you mean"):
        evaluate_slates(log, weights, "cascades")  # type: ignore[arg-type]
    one = replace(log, positions=0 * log.positions, position_ids=("",))
    with pytest.raises(DataError, match="--position-col"):
        evaluate_slates(one, weights, "independent")


def test_few_requests_that_carry_the_weight_are_warned_about() -> None:
    log, weights = slates_log(50)
    weights[1::2] = 0.01
    weights[1] = 10
    (warning,) = evaluate_slates(log, weights, "independent").warnings
    assert warning.startswith("At the last position the 50 requests are worth 1 of the target's own")
