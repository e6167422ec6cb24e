"""All estimates on one log, with their intervals."""

from dataclasses import replace

import numpy as np
import pytest

from bandit_logs import ids, small_world
from towpath.bandit.estimators import Scales
from towpath.bandit.evaluate import INTERVALS, Evaluating, evaluate_policy, value_bounds
from towpath.bandit.log import BanditLog
from towpath.bandit.policies import TablePolicy, uniform_policy
from towpath.bandit.propensity import with_estimated_propensities
from towpath.errors import ConfigError, DataError
from towpath.rng import Rng

WORLD = small_world(0)
LOG = WORLD.log(4000, Rng(0).numpy("log"))
UNIFORM = uniform_policy(2, 5)
FOUND = evaluate_policy(LOG, UNIFORM)


def test_every_estimator_is_near_the_truth_and_every_interval_holds_it() -> None:
    truth = WORLD.value(np.full((2, 5), 0.2))
    assert abs(FOUND.values["dm"] - truth) > 0.02  # clicks are not additive in item and position here
    for name in ("ips", "snips", "dr", "sndr", "switch-dr"):
        assert FOUND.values[name] == pytest.approx(truth, abs=0.03)
    for name in ("ips", "snips", "dr", "sndr"):
        for estimate in FOUND.estimates[name].values():
            assert estimate.covers(truth)
            assert estimate.mean == pytest.approx(FOUND.values[name])


def test_which_intervals_apply_to_what() -> None:
    kinds = {name: set(found) for name, found in FOUND.estimates.items()}
    assert kinds["ips"] == set(INTERVALS)
    assert kinds["snips"] == {"gamma", "normal", "bootstrap"}
    assert kinds["dr"] == set(INTERVALS) - {"gamma"}
    assert kinds["sndr"] == {"normal", "bootstrap"}
    halves = evaluate_policy(replace(LOG, rewards=LOG.rewards / 2), UNIFORM)
    assert "gamma" not in halves.estimates["ips"]  # no counts


def test_the_log_evaluates_its_own_policy_as_what_it_earned() -> None:
    own = evaluate_policy(LOG, TablePolicy(WORLD.logging))
    assert own.values["ips"] == pytest.approx(LOG.rewards.mean())
    assert own.overlap.ess_share == pytest.approx(1)
    assert own.overlap.unsupported_mass == pytest.approx(0)
    assert own.warnings == ()


def test_json_has_the_contract() -> None:
    found = FOUND.to_json()
    assert {"rows", "ess_share", "unsupported_mass", "estimates", "warnings"} <= set(found)
    assert found["rows"] == 4000
    low, high = found["estimates"]["ips"]["intervals"]["gamma"]
    assert low < found["estimates"]["ips"]["value"] < high
    assert list(found["estimates"]) == [
        "ips", "clipped", "snips", "dm", "dr", "sndr", "switch-dr", "dros", "sub-gaussian",
    ]  # fmt: skip


def test_a_uniform_log_knows_its_largest_weight() -> None:
    uniform = replace(LOG, propensities=np.full(len(LOG), 0.2))
    skewed = TablePolicy(np.tile([0.6, 0.1, 0.1, 0.1, 0.1], (2, 1)))
    how = evaluate_policy(uniform, skewed).estimates["ips"]["betting"].how
    assert how.endswith("values at most 3")
    assert "w (1 - r)" in FOUND.estimates["ips"]["betting"].how


def test_no_overlap_is_refused() -> None:
    only_first = BanditLog(
        np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64), np.ones(5), ids(2), propensities=np.ones(5)
    )
    with pytest.raises(DataError, match="there is no overlap"):
        evaluate_policy(only_first, TablePolicy(np.array([[0.0, 1.0]])))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(DataError, match="needs the propensity"):
        evaluate_policy(replace(LOG, propensities=None), UNIFORM)
    with pytest.raises(ConfigError, match="did you mean 'gamma'"):
        Evaluating(intervals=["gama"])
    with pytest.raises(ConfigError, match="--cross-fit"):
        Evaluating(cross_fit=0)


def test_bounds_of_per_row_values_hold() -> None:
    scales = Scales(clip=1.2, tau=1.1, dros=0.5, sub_gaussian=0.8)
    found = evaluate_policy(LOG, UNIFORM, Evaluating(scales=scales, intervals=["normal"]))
    most = found.overlap.largest_weight
    for name in ("ips", "clipped", "dm", "dr", "switch-dr", "dros", "sub-gaussian"):
        low, high = value_bounds(name, scales, most)
        values = found.rows[name].linearised()
        assert values.min() >= low - 1e-12
        assert values.max() <= high + 1e-12


def test_estimated_propensities_are_near_the_true_ones_and_said() -> None:
    estimated = with_estimated_propensities(replace(LOG, propensities=None))
    assert estimated.propensities is not None
    assert LOG.propensities is not None
    assert np.abs(estimated.propensities - LOG.propensities).max() < 0.06
    found = evaluate_policy(estimated, UNIFORM)
    assert "propensities were estimated" in found.to_json()["notes"][-1]
    assert found.values["ips"] == pytest.approx(FOUND.values["ips"], abs=0.02)


def test_estimated_propensities_can_depend_on_features() -> None:
    rng = Rng(4).numpy("features")
    group = rng.integers(2, size=6000)
    chances = np.array([[0.8, 0.2], [0.3, 0.7]])
    actions = (rng.random(6000) > chances[group, 0]).astype(np.int64)
    log = BanditLog(actions, 0 * actions, np.ones(6000), ids(2), features=group[:, None])
    found = with_estimated_propensities(log).propensities
    assert found is not None
    assert found == pytest.approx(chances[group, actions], abs=0.03)
