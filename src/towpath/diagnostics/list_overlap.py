"""What logged propensities say about showing a model's lists."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.bandit.log import BanditLog
from towpath.bandit.overlap import Overlap, WeightedRows, assess_overlap
from towpath.bandit.policies import TopPolicy, apply_policy
from towpath.data.interactions import Interactions

Codes = NDArray[np.int64]
Values = NDArray[np.float64]

# More positions than this are no list; the log's positions are then not looked at.
MOST_POSITIONS = 50


@dataclass(frozen=True)
class ListOverlap:
    """The logged rows weighted towards the lists, and what the weights say."""

    overlap: Overlap
    weights: Values  # (n,)
    rewards: Values  # (n,)
    most: float | None  # the largest weight that is possible, where the log has one propensity throughout


def depth_of(rows: Interactions, k: int, n_items: int) -> int:
    """How long lists must be, so that they have something at every position of the log."""
    deepest = 0 if rows.positions is None or rows.propensities is None else int(rows.positions.max())
    return min(n_items, max(k, deepest if deepest <= MOST_POSITIONS else 0))


def without_propensity(rows: Interactions) -> int:
    """How many rows lack a propensity that others have."""
    return 0 if rows.propensities is None else int(np.isnan(rows.propensities).sum())


def overlap_of(rows: Interactions, users: Codes, lists: Codes, k: int) -> ListOverlap | None:
    """The overlap of the rows with the lists (b, depth) of these users (b,).

    None where nothing was shown to them, or the propensity of something is not known.
    """
    if rows.propensities is None or rows.labels is None or without_propensity(rows):
        return None
    place = np.full(rows.n_users, -1)
    place[users] = np.arange(len(users))
    theirs = rows.where(place[rows.users] >= 0)
    if len(theirs) == 0:
        return None
    log = _bandit_log(theirs, place)
    assert log.propensities is not None  # they are those of the rows
    one = log.n_positions == 1
    policy = TopPolicy(lambda c: lists[c], rows.n_items, k if one else lists.shape[1], one)
    nothing = np.zeros((1, log.n_positions, log.n_actions))
    on_log = apply_policy(policy, log, nothing, np.zeros(len(log), dtype=np.int64))
    weights = on_log.chosen / log.propensities
    weighted = WeightedRows(weights, log.rewards, log.propensities, log.actions, on_log.mass, on_log.unseen)
    return ListOverlap(
        assess_overlap(weighted), weights, log.rewards, on_log.largest_weight(log.propensities)
    )


def _bandit_log(rows: Interactions, place: Codes) -> BanditLog:
    """The rows as a bandit log whose contexts are the users that have lists."""
    assert rows.labels is not None  # checked by whoever calls
    assert rows.propensities is not None
    positions = np.zeros(len(rows), dtype=np.int64)
    if rows.positions is not None and rows.positions.max() <= MOST_POSITIONS:
        positions = rows.positions.astype(np.int64) - 1
    return BanditLog(
        actions=rows.items.astype(np.int64),
        positions=positions,
        rewards=rows.labels.astype(np.float64),
        item_ids=rows.item_ids,
        position_ids=tuple(str(p + 1) for p in range(int(positions.max()) + 1)),
        propensities=rows.propensities.astype(np.float64),
        contexts=place[rows.users],
    )
