"""The reward model: optimality, folds, and what happens without anything to learn."""

import numpy as np
import pytest
from scipy.special import logit

from bandit_logs import ids, small_world
from towpath.bandit.log import BanditLog
from towpath.bandit.reward_model import fit_reward_model, fit_reward_table
from towpath.rng import Rng

LOG = small_world(1, positions=3, actions=6).log(3000, Rng(1).numpy("log"))
EVERY = np.ones(3000, dtype=np.bool_)


def test_the_table_satisfies_the_optimality_conditions() -> None:
    """With beta item and position parts, the slope is sum(q - r) over their rows + beta, zero for all."""
    table = fit_reward_table(LOG, EVERY)
    error = table[LOG.positions, LOG.actions] - LOG.rewards
    assert error.sum() == pytest.approx(0, abs=1e-6)  # the intercept is free
    logits = logit(table)
    by_item = -np.bincount(LOG.actions, weights=error, minlength=6)  # beta = - sum of errors
    by_position = -np.bincount(LOG.positions, weights=error, minlength=3)
    intercept = logits - by_item[None, :] - by_position[:, None]
    assert np.ptp(intercept) == pytest.approx(0, abs=1e-6)
    assert by_item.sum() == pytest.approx(0, abs=1e-6)  # a constant is cheaper in the intercept


def test_an_item_that_was_never_shown_gets_intercept_and_position() -> None:
    log = BanditLog(LOG.actions, LOG.positions, LOG.rewards, ids(7), LOG.position_ids, LOG.propensities)
    table = fit_reward_table(log, EVERY)
    shown = fit_reward_table(LOG, EVERY)
    assert table[:, :6] == pytest.approx(shown, abs=1e-9)
    spread = logit(table[:, 6])[:, None] - logit(shown)
    assert np.ptp(spread, axis=0) == pytest.approx(0, abs=1e-7)


def test_a_row_is_evaluated_by_a_model_that_never_saw_it() -> None:
    model = fit_reward_model(LOG, folds=3)
    assert model.tables.shape == (3, 3, 6)
    rows = np.arange(3000) % 3
    assert np.array_equal(model.tables[1], fit_reward_table(LOG, rows != 1))
    expected = np.array([model.tables[i % 3, LOG.positions[i], LOG.actions[i]] for i in range(3000)])
    assert np.array_equal(model.predicted(LOG), expected)


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_rewards_that_are_all_alike_have_no_finite_optimum_but_a_limit(reward: float) -> None:
    log = BanditLog(LOG.actions, LOG.positions, np.full(3000, reward), ids(6), LOG.position_ids)
    assert (fit_reward_table(log, EVERY) == reward).all()


def test_fractional_rewards_count_as_they_are() -> None:
    halves = BanditLog(np.array([0, 0]), np.zeros(2, dtype=np.int64), np.array([0.5, 0.5]), ids(1))
    split = BanditLog(np.array([0, 0]), np.zeros(2, dtype=np.int64), np.array([0.0, 1.0]), ids(1))
    keep = np.ones(2, dtype=np.bool_)
    assert fit_reward_table(halves, keep) == pytest.approx(fit_reward_table(split, keep))
