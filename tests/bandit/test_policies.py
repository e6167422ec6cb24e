"""Policies: chances by hand, and a policy laid on a log."""

import numpy as np
import pytest

from bandit_logs import ids, small_world
from towpath.bandit.log import BanditLog
from towpath.bandit.policies import (
    MixedPolicy,
    SoftmaxPolicy,
    TablePolicy,
    TopPolicy,
    apply_policy,
    uniform_policy,
)
from towpath.errors import ConfigError
from towpath.rng import Rng

ZERO = np.zeros(2, dtype=np.int64)
LISTS = np.array([[2, 0], [1, 2]])


def test_chances_by_hand() -> None:
    contexts, positions = np.array([0, 1]), np.array([1, 0])
    top = TopPolicy(lambda c: LISTS[c], actions=3, places=2, one_position=False)
    assert top.probabilities(contexts, positions).tolist() == [[1, 0, 0], [0, 1, 0]]
    either = TopPolicy(lambda c: LISTS[c], actions=3, places=2, one_position=True)
    assert either.probabilities(contexts, ZERO).tolist() == [[0.5, 0, 0.5], [0, 0.5, 0.5]]
    short = TopPolicy(lambda c: np.array([[2, -1]] * len(c)), actions=3, places=2, one_position=False)
    assert short.probabilities(contexts, positions).tolist() == [[0, 0, 0], [0, 0, 1]]
    mixed = MixedPolicy(top, 0.3).probabilities(contexts, positions)
    assert mixed == pytest.approx(np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]))
    scores = np.log(np.array([[1.0, 3.0], [1.0, 1.0]]))
    soft = SoftmaxPolicy(lambda c: scores[c], temperature=0.5).probabilities(contexts, ZERO)
    assert soft == pytest.approx(np.array([[0.1, 0.9], [0.5, 0.5]]))
    assert uniform_policy(2, 4).probabilities(contexts, positions) == pytest.approx(np.full((2, 4), 0.25))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"sum to 0\.8"):
        TablePolicy(np.array([[0.5, 0.3]]))
    with pytest.raises(ConfigError, match="temperature should be above 0"):
        SoftmaxPolicy(lambda c: np.zeros((1, 1)), temperature=0)
    with pytest.raises(ConfigError, match="epsilon should lie"):
        MixedPolicy(uniform_policy(1, 2), 1.5)


def test_a_policy_on_a_log_row_by_row() -> None:
    """Against the plain loop, with contexts, positions and two folds; blocks must not matter."""
    rng = Rng(2).numpy("test")
    base = small_world(0, positions=3, actions=5).log(300, rng)
    contexts = rng.integers(40, size=300)
    log = BanditLog(
        base.actions, base.positions, base.rewards, base.item_ids, base.position_ids, contexts=contexts
    )
    scores, tables, folds = rng.normal(size=(40, 5)), rng.random((2, 3, 5)), np.arange(300) % 2
    policy = SoftmaxPolicy(lambda c: scores[c])
    found = apply_policy(policy, log, tables, folds)
    chances = policy.probabilities(contexts, log.positions)
    assert found.chosen == pytest.approx(chances[np.arange(300), log.actions])
    assert found.expected == pytest.approx((chances * tables[folds, log.positions]).sum(axis=1))
    assert found.mass == pytest.approx(chances.mean(axis=0))
    assert found.peak == chances.max()


def test_mass_on_actions_that_were_never_logged_at_a_position() -> None:
    log = BanditLog(np.array([0, 1, 1]), np.array([0, 0, 1]), np.zeros(3), ids(2), ("1", "2"))
    policy = TablePolicy(np.array([[0.5, 0.5], [0.25, 0.75]]))
    found = apply_policy(policy, log, np.zeros((1, 2, 2)), np.zeros(3, dtype=np.int64))
    assert found.unseen == pytest.approx(0.25 / 3)  # action 0 at the second position, one row of three
