"""Estimators: values by hand, laws, agreement with vw-estimators, unbiasedness over seeds."""

import numpy as np
import pytest
from estimators.bandits import ips as vw_ips
from estimators.bandits import snips as vw_snips
from hypothesis import given
from hypothesis import strategies as st

from bandit_logs import small_world
from towpath.bandit.estimators import ESTIMATORS, LoggedRows, Scales, effective_sample_size
from towpath.bandit.policies import TablePolicy, apply_policy
from towpath.bandit.reward_model import RewardModel
from towpath.rng import Rng

ROWS = LoggedRows(
    weights=np.array([0.5, 2.0, 0.0, 20.0]),
    rewards=np.array([1.0, 0.0, 1.0, 1.0]),
    predicted=np.array([0.5, 0.5, 0.25, 0.75]),
    expected=np.array([0.4, 0.4, 0.6, 0.6]),
)
# Worked out by hand: w r = (.5, 0, 0, 20), r - q = (.5, -.5, .75, .25), w (r - q) = (.25, -1, 0, 5).
BY_HAND = {
    "ips": 20.5 / 4,
    "clipped": 10.5 / 4,
    "snips": 20.5 / 22.5,
    "dm": 0.5,
    "dr": 0.5 + 4.25 / 4,
    "sndr": 0.5 + 4.25 / 22.5,
    "switch-dr": 0.5 - 0.75 / 4,
    # lam w / (w^2 + lam) = (50/100.25, 200/104, 0, 2000/500)
    "dros": 0.5 + (0.5 * 50 / 100.25 - 0.5 * 200 / 104 + 0.25 * 4) / 4,
    # w / (.5 + .5 w) = (2/3, 4/3, 0, 40/21)
    "sub-gaussian": (2 / 3 + 40 / 21) / 4,
}
SCALES = Scales(clip=10, tau=10, dros=100, sub_gaussian=0.5)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_values_by_hand(name: str) -> None:
    assert ESTIMATORS[name](ROWS, SCALES).value == pytest.approx(BY_HAND[name], rel=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_per_row_values_have_the_estimate_as_their_mean(name: str) -> None:
    found = ESTIMATORS[name](ROWS, SCALES)
    assert found.linearised().shape == (4,)
    assert found.linearised().mean() == pytest.approx(found.value, rel=1e-12)


def test_ips_and_snips_agree_with_vw_estimators() -> None:
    rng = Rng(5).numpy("vw")
    p_log, p_new, rewards = rng.uniform(0.01, 1, 3000), rng.uniform(0, 1, 3000), rng.random(3000)
    theirs = {"ips": vw_ips.Estimator(), "snips": vw_snips.Estimator()}
    for row in zip(p_log, rewards, p_new, strict=True):
        for estimator in theirs.values():
            estimator.add_example(*row)
    ours = LoggedRows(p_new / p_log, rewards, 0 * rewards, 0 * rewards)
    for name, estimator in theirs.items():
        assert ESTIMATORS[name](ours, Scales()).value == pytest.approx(estimator.get(), rel=1e-12)


positive = st.lists(st.tuples(st.floats(0.01, 50), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=20)


@given(positive, st.floats(-1, 1))
def test_laws(rows: list[tuple[float, float, float]], shift: float) -> None:
    w, r, q = (np.array(column) for column in zip(*rows, strict=True))
    given_rows = LoggedRows(w, r, q, np.full(len(w), 0.3))
    value = {name: estimator(given_rows, Scales()).value for name, estimator in ESTIMATORS.items()}
    assert value["clipped"] <= value["ips"] + 1e-12
    assert value["sub-gaussian"] <= 1 / Scales().sub_gaussian
    shifted = LoggedRows(w, r + shift, q, given_rows.expected)
    moved = ESTIMATORS["snips"](shifted, Scales()).value
    assert moved == pytest.approx(value["snips"] + shift, abs=1e-9)  # SNIPS moves with the rewards
    exact = LoggedRows(w, r, r, given_rows.expected)  # a model without error needs no weights
    for name in ("dr", "sndr", "switch-dr", "dros"):
        assert ESTIMATORS[name](exact, Scales()).value == pytest.approx(0.3)


def test_scales_at_their_ends_give_the_estimators_they_lie_between() -> None:
    ends = Scales(clip=np.inf, tau=np.inf, dros=1e12, sub_gaussian=0.0)
    found = {name: estimator(ROWS, ends).value for name, estimator in ESTIMATORS.items()}
    assert found["clipped"] == found["ips"] == found["sub-gaussian"]
    assert found["switch-dr"] == found["dr"] == pytest.approx(found["dros"])
    none = Scales(tau=0.0, dros=1e-12)
    assert ESTIMATORS["switch-dr"](ROWS, none).value == pytest.approx(0.5)
    assert ESTIMATORS["dros"](ROWS, none).value == pytest.approx(0.5)


def test_effective_sample_size() -> None:
    assert effective_sample_size(np.full(7, 3.0)) == pytest.approx(7)
    assert effective_sample_size(np.array([0.5, 0.5, 1, 2])) == pytest.approx(2.90909, abs=1e-5)
    assert effective_sample_size(np.zeros(3)) == 0


def test_estimates_are_unbiased_over_seeds_where_propensities_are_known() -> None:
    world = small_world(3)
    policy = Rng(9).numpy("target").dirichlet(np.ones(5), size=2)
    truth = world.value(policy)
    wrong = np.full((1, 2, 5), 0.9)  # a reward model that is far off, and fixed in advance
    found: dict[str, list[float]] = {name: [] for name in ("ips", "dr", "dm", "snips")}
    for seed in range(200):
        log = world.log(500, Rng(seed).numpy("log"))
        on_log = apply_policy(TablePolicy(policy), log, wrong, np.zeros(500, dtype=np.int64))
        model = RewardModel(wrong, np.zeros(500, dtype=np.int64))
        assert log.propensities is not None
        rows = LoggedRows(
            on_log.chosen / log.propensities, log.rewards, model.predicted(log), on_log.expected
        )
        for name, values in found.items():
            values.append(ESTIMATORS[name](rows, Scales()).value)
    for name in ("ips", "dr", "snips"):
        error = np.std(found[name], ddof=1) / np.sqrt(200)
        assert abs(np.mean(found[name]) - truth) < 3 * error + (0.002 if name == "snips" else 0)
    assert np.mean(found["dm"]) == pytest.approx(0.9)  # the wrong model alone is not corrected
