"""The rules that choose clipping and shrinkage on the log."""

import numpy as np
import pytest

from bandit_logs import BanditWorld
from towpath.bandit.estimators import ESTIMATORS, LoggedRows, Scales
from towpath.bandit.tuning import OWNERS, RULES, candidates, slope, squared_error_bound, tune_scales
from towpath.errors import ConfigError
from towpath.rng import Rng


def test_slope_by_hand() -> None:
    # All agree: the last. The second disagrees with the first beyond both spreads: the first.
    assert slope([1.0, 1.05, 1.1], [0.5, 0.3, 0.1]) == 2
    assert slope([1.0, 4.0, 1.0], [0.5, 0.3, 0.1]) == 0
    # Exactly on the edge still counts: |1 - 2| <= h_1 + (sqrt 6 - 1) h_0.
    assert slope([1.0, 2.0], [1 / (np.sqrt(6) - 1), 0.0]) == 1


def test_the_bound_by_hand() -> None:
    w, t = np.array([1.0, 3.0]), np.array([1.0, 1.0])
    rows = LoggedRows(w, t, 0 * t, 0 * t)
    length = np.log(40)
    bias = 0.5 + np.sqrt(2 * 5 * length / 2) + 2 * 3 * length / 6
    assert squared_error_bound(rows, np.array([1.0, 2.0]), t) == pytest.approx(bias**2 + 0.5 / 2)


def test_candidates_start_with_the_least_bias() -> None:
    weights = np.linspace(0, 10, 101)
    assert candidates(weights, "clip")[0] == 10
    assert candidates(weights, "dros")[0] > 1e5
    assert candidates(weights, "sub_gaussian")[0] == 0


@pytest.mark.parametrize("rule", RULES)
def test_tuned_estimates_beat_ips_where_weights_are_heavy(rule: str) -> None:
    """Rare actions of the log carry weight 20; the reward hardly depends on the action."""
    logging = np.array([[0.48, 0.48, 0.01, 0.01, 0.02]])
    world = BanditWorld(logging, np.array([[0.1, 0.12, 0.1, 0.11, 0.12]]))
    truth = world.value(np.full((1, 5), 0.2))
    errors: dict[str, list[float]] = {name: [] for name in ("ips", "switch-dr", "dros")}
    for seed in range(30):
        log = world.log(400, Rng(seed).numpy("log"))
        w = 0.2 / logging[log.positions, log.actions]
        q = np.full(400, 0.11)
        rows = LoggedRows(w, log.rewards, q, q)
        scales = tune_scales(rows, Scales(), rule)
        for name, found in errors.items():
            found.append((ESTIMATORS[name](rows, scales).value - truth) ** 2)
    assert np.mean(errors["switch-dr"]) < np.mean(errors["ips"])
    assert np.mean(errors["dros"]) < np.mean(errors["ips"])


def test_weights_without_spread_leave_nothing_to_tune() -> None:
    rows = LoggedRows(np.ones(50), np.ones(50), np.zeros(50), np.zeros(50))
    scales = tune_scales(rows, Scales())
    assert scales.clip == scales.tau == 1
    values = [ESTIMATORS[OWNERS[name]](rows, scales).value for name in ("clip", "tau")]
    assert values == [1, 1]


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'slope'"):
        tune_scales(LoggedRows(np.ones(2), np.ones(2), np.ones(2), np.ones(2)), Scales(), "slop")
