"""Who chose what was shown: an earlier recommender, or the models that were trained on its log."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.data.sql import NO_POLICY, RANDOM_POLICY


def with_policy(log: Interactions, code: int) -> Interactions:
    """The same rows, all shown by this policy."""
    return replace(log, policies=np.full(len(log), code, dtype=np.int32))


def without_policy(log: Interactions) -> Interactions:
    """The same rows, shown by nobody in particular: an earlier recommender."""
    return with_policy(log, NO_POLICY)


def chosen_elsewhere(log: Interactions) -> NDArray[np.bool_]:
    """Which rows were chosen by a recommender whose choice says something that this log does not: (n,).

    The choice of the earlier recommender is evidence of its own: it knew what the log does not say. A model
    that was trained on the log and then served chose by the log alone. Where rows without a policy come with
    rows that name one, as `towpath log export` writes them, the latter are taken for such a model's. Where
    all rows name one, or none does, nothing tells them apart and all count. Rows that were shown at random
    were chosen by nobody: they do not count, unless there are no others.
    """
    if log.policies is None:
        return np.ones(len(log), dtype=np.bool_)
    unnamed, chosen = log.policies == NO_POLICY, ~shown_at_random(log)
    if unnamed.any():
        return unnamed
    return chosen if chosen.any() else np.ones(len(log), dtype=np.bool_)


def shown_at_random(log: Interactions) -> NDArray[np.bool_]:
    """Which rows were shown by chance, not chosen: those whose policy is called `random` (n,)."""
    if log.policies is None:
        return np.zeros(len(log), dtype=np.bool_)
    return log.policies == RANDOM_POLICY
