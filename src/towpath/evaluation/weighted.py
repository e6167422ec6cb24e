"""Ranking metrics reweighted by the chance that a positive was logged: what all positives would have given.

    ips     (1 / targets of u) sum_t gain(rank_t) / p_t              the mean over users
    snips   sum_t gain(rank_t) / p_t   /   sum_t 1 / p_t             over all targets of all users

p_t is the logged propensity of a target, times the chance that its position was looked at where that is known
(Yang et al. 2018 call the first one the unbiased estimator). Small propensities make both vary a lot.
"""

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.errors import DataError
from towpath.evaluation.metrics import Ranks
from towpath.evaluation.task import RankingTask


def target_propensities(
    task: RankingTask, part: Interactions, examination: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """The propensity of every target, in their order: (m,). A pair that occurs often counts as at first."""
    if part.propensities is None:
        raise DataError(
            "The protocols ips and snips need the propensity of every test event, but the data have none; "
            "name their column with --propensity-col."
        )
    chances = part.propensities.astype(np.float64)
    if np.isnan(chances).any():
        missing = int(np.isnan(chances).sum())
        raise DataError(
            f"The protocols ips and snips need the propensity of every test event; {missing:,} of "
            f"{len(part):,} have none. Fill them in, or use the protocol full."
        )
    if examination is not None:
        chances = chances * examination_of(part, examination)
    keys, first = np.unique(part.pair_keys(), return_index=True)
    wanted = task.users[task.rows] * task.n_items + task.targets
    return chances[first[np.searchsorted(keys, wanted)]]


def examination_of(part: Interactions, examination: NDArray[np.float64]) -> NDArray[np.float64]:
    """The chance that the position of each row was looked at: (n,)."""
    if part.positions is None:
        raise DataError(
            "Examination is by position, but the data have no column of positions; name it by --position-col."
        )
    most = int(part.positions.max(initial=1))
    if part.positions.min(initial=1) < 1 or most > len(examination):
        raise DataError(
            f"Positions should lie between 1 and {len(examination)}, where examination is known, but they go "
            f"from {int(part.positions.min())} to {most}."
        )
    return examination[part.positions - 1]


def weighted_metrics(
    ranks: Ranks, propensities: NDArray[np.float64], k: int, *, self_normalised: bool
) -> dict[str, NDArray[np.float64]]:
    """Hit, NDCG and MRR of every user, whose mean is the estimate: metric -> (n,).

    Each target counts on its own, so hit is the share of positives in the list and NDCG the discount of each.
    """
    weights, inside = 1 / propensities, (ranks.values < k).astype(np.float64)
    gains = {
        "hit": inside,
        "ndcg": inside / np.log2(ranks.values + 2),
        "mrr": inside / (ranks.values + 1),
    }
    n = len(ranks.targets)
    sums = {name: np.bincount(ranks.rows, weights * gain, n) for name, gain in gains.items()}
    if self_normalised:
        return {name: values * n / weights.sum() for name, values in sums.items()}
    return {name: values / ranks.targets for name, values in sums.items()}
