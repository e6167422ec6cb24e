"""What a list is worth to a user, from the ranks of the items that turned out to be right.

All functions are pure, take `Ranks` and return one value per user; means are taken later. A rank counts from
0 and may be fractional (ties share their mean rank). A target is in the list if its rank is below k; of the
targets whose ties straddle the end of the list at most k count, the best first, since the list has k slots.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ranks:
    """The ranks of all targets of all users.

    A protocol that draws candidates with replacement may show a target several times: the further copies have
    ranks too, marked in `copies`, and do not add to `targets`.
    """

    values: NDArray[np.float64]  # (m,) rank of a target
    rows: NDArray[np.int64]  # (m,) whose target it is: 0..n-1
    targets: NDArray[np.int64]  # (n,) how many different targets each user has, at least one
    copies: NDArray[np.bool_] | None = None  # (m,) whether it is a further copy of a target


def hit_at_k(ranks: Ranks, k: int) -> NDArray[np.float64]:
    """Whether any target is in the list, plus one for each further copy that is: (n,).

    hit = 1[min_t rank_t < k]  +  #{copies c : rank_c < k}
    """
    inside = _in_list(ranks, k)
    if ranks.copies is None:
        return np.minimum(_per_user(ranks, inside), 1.0)
    first = np.minimum(_per_user(ranks, inside & ~ranks.copies), 1.0)
    return first + _per_user(ranks, inside & ranks.copies)


def ndcg_at_k(ranks: Ranks, k: int) -> NDArray[np.float64]:
    """Discounted gain of the list as a share of the best possible one: (n,).

        ndcg = sum_{t : rank_t < k} 1 / log2(rank_t + 2)   /   sum_{j < min(k, targets)} 1 / log2(j + 2)

    >>> one_at_second_place = Ranks(np.array([1.0]), np.array([0]), np.array([1]))
    >>> ndcg_at_k(one_at_second_place, 10).round(4)
    array([0.6309])
    """
    gains = _in_list(ranks, k) / np.log2(ranks.values + 2)
    ideal = np.cumsum(1 / np.log2(np.arange(k) + 2))
    return _per_user(ranks, gains) / ideal[np.minimum(k, ranks.targets) - 1]


def recall_at_k(ranks: Ranks, k: int) -> NDArray[np.float64]:
    """Share of a user's targets that are in the list: (n,).

    recall = #{t : rank_t < k} / targets
    """
    return rel_at_k(ranks, k) / ranks.targets


def mrr_at_k(ranks: Ranks, k: int) -> NDArray[np.float64]:
    """Reciprocal of the best target's rank in the list (from 1), 0 if none is in it: (n,).

    mrr = 1 / (min_t rank_t + 1)  if that rank is below k, else 0
    """
    best = np.full(len(ranks.targets), np.inf)
    np.minimum.at(best, ranks.rows, ranks.values)
    return np.where(best < k, 1 / (best + 1), 0.0)


def rel_at_k(ranks: Ranks, k: int) -> NDArray[np.float64]:
    """Relevance of the whole list where relevance is known by its targets alone: (n,).

        rel = #{t : rank_t < k}

    Where the true relevance of every pair is known (simulated worlds) see `relevance_of_lists`.
    """
    return _per_user(ranks, _in_list(ranks, k))


def relevance_of_lists(relevance: NDArray[np.floating], lists: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum of the true relevance over each list, (n,); relevance, lists: (n, k), empty slots (-1) count 0."""
    return np.where(lists >= 0, relevance, 0.0).sum(axis=1, dtype=np.float64)


def _in_list(ranks: Ranks, k: int) -> NDArray[np.bool_]:
    """Which ranks are in a list of k slots: (m,)."""
    inside = ranks.values < k
    if np.bincount(ranks.rows[inside], minlength=1).max() <= k:
        return inside
    # Ties at the end of the list: more than k targets have a mean rank below k. The k best of them count.
    order = np.lexsort((ranks.values, ranks.rows))
    counts = np.bincount(ranks.rows)
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    inside[order[place >= k]] = False
    return inside


def _per_user(ranks: Ranks, values: NDArray[np.bool_] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of (m,) values over each user's targets: (n,)."""
    return np.bincount(ranks.rows, weights=values, minlength=len(ranks.targets)).astype(np.float64)
