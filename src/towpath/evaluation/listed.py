"""Evaluation on listed items: each user's candidates are the items that a file has for them, with labels.

A random exposure sample or a slate says of every listed item whether it was a positive, so that AUC, log loss
and calibration can be had without a guess about unlabelled items.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from towpath.data.interactions import Histories, Interactions
from towpath.errors import DataError, TrainingError
from towpath.evaluation.result import Evaluation, named_by_k
from towpath.models.scorer import Scorer
from towpath.ranking.blocks import NOTHING, candidate_block, rows_per_block
from towpath.ranking.scoring import score_block

# Models look up an embedding for every candidate of a list: up to 256 floats, twice.
_BYTES_PER_CANDIDATE = 2048
_BINS = 10


@dataclass(frozen=True)
class ListedPairs:
    """What was listed for each user, packed end to end: user r has the rows starts[r] to starts[r + 1]."""

    users: NDArray[np.int64]  # (n,) codes
    starts: NDArray[np.int64]  # (n + 1,)
    items: NDArray[np.int64]  # (m,)
    labels: NDArray[np.bool_]  # (m,)
    gains: NDArray[np.float64]  # (m,) what a positive is worth; 0 where the label is 0

    @property
    def rows(self) -> NDArray[np.int64]:
        """Whose row each is, from 0: (m,)."""
        return np.repeat(np.arange(len(self.users)), np.diff(self.starts))

    def of_users(self, known: NDArray[np.bool_]) -> "ListedPairs":
        """The pairs of users that are known, given for every code."""
        keep = known[self.users]
        rows = keep[self.rows]
        counts = np.diff(self.starts)[keep]
        starts = np.concatenate([[0], np.cumsum(counts)])
        return ListedPairs(self.users[keep], starts, self.items[rows], self.labels[rows], self.gains[rows])


def listed_pairs(part: Interactions, *, graded: bool = False) -> ListedPairs:
    """The items listed for each user of a part, each pair once; a pair that was ever positive is one.

    With `graded`, a positive is worth its value instead of one.
    """
    rows = part.rows
    labels = np.ones(len(rows), dtype=np.bool_) if rows.labels is None else rows.labels
    worth = np.ones(len(rows)) if not graded else _values(rows)
    keys, places = np.unique(rows.pair_keys(), return_inverse=True)
    label, gain = np.zeros(len(keys), dtype=np.bool_), np.zeros(len(keys))
    np.logical_or.at(label, places, labels)
    np.maximum.at(gain, places, np.where(labels, worth, 0.0))
    owners = keys // part.n_items
    users, counts = np.unique(owners, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return ListedPairs(users, starts, keys % part.n_items, label, gain)


def _values(rows: Interactions) -> NDArray[np.float64]:
    if rows.values is None:
        raise DataError(
            "Graded gains need a column of values, but the data have none; name it by --value-col."
        )
    return np.nan_to_num(rows.values.astype(np.float64))


def listed_candidates(candidates: Interactions, targets: Interactions) -> ListedPairs:
    """The candidates of each user with a target, labelled by whether they are one of the user's targets."""
    wanted = np.unique(targets.pair_keys())
    keys = np.unique(candidates.rows.pair_keys())
    keys = keys[np.isin(keys // targets.n_items, wanted // targets.n_items)]
    missing = wanted[~np.isin(wanted, keys)]
    if len(missing):
        user = targets.user_ids.ids(missing[:1] // targets.n_items)[0]
        item = targets.item_ids.ids(missing[:1] % targets.n_items)[0]
        raise DataError(
            f"The candidates of a user should contain their test items, but {len(missing):,} of "
            f"{len(wanted):,} test items are not among them (first: user {user!r}, item {item!r}); add them "
            "to the file."
        )
    labels = np.isin(keys, wanted)
    users, counts = np.unique(keys // targets.n_items, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return ListedPairs(users, starts, keys % targets.n_items, labels, labels.astype(np.float64))


def score_listed(scorer: Scorer, pairs: ListedPairs, seen: Histories) -> NDArray[np.float64]:
    """The score of every listed pair: (m,)."""
    scores = np.empty(len(pairs.items))
    counts = np.diff(pairs.starts)
    step = rows_per_block(int(counts.max()), bytes_per_score=_BYTES_PER_CANDIDATE)
    for first in range(0, len(pairs.users), step):
        last = min(first + step, len(pairs.users))
        mine = slice(pairs.starts[first], pairs.starts[last])
        rows = pairs.rows[mine] - first
        columns = np.arange(mine.start, mine.stop) - pairs.starts[first:last][rows]
        listed = np.full((last - first, int(columns.max()) + 1), NOTHING, dtype=np.int64)
        listed[rows, columns] = pairs.items[mine]
        block = score_block(scorer, candidate_block(pairs.users[first:last], listed), seen)
        found = block[torch.from_numpy(rows), torch.from_numpy(columns)]
        scores[mine] = found.cpu().numpy()
    return scores


def evaluate_listed(
    scorer: Scorer, pairs: ListedPairs, seen: Histories, *, protocol: str, on: str, ks: Sequence[int]
) -> Evaluation:
    """AUC, NDCG, hit, recall and MAP of users with a listed positive; log loss and calibration of all rows.

    AUC is not a number for a user whose listed items are all positive; means leave such users out.
    """
    if not pairs.labels.any():
        raise DataError("Listed items can be evaluated only if some of them are positives, and none is.")
    scores = score_listed(scorer, pairs, seen)
    if not np.isfinite(scores).all():
        raise TrainingError("The model gives listed items scores that are not numbers; train it again.")
    chosen = np.add.reduceat(pairs.labels, pairs.starts[:-1]) > 0
    per_user = named_by_k({k: listed_metrics(pairs, scores, k) for k in ks})
    return Evaluation(
        protocol=protocol,
        on=on,
        k=max(ks),
        users=pairs.users[chosen],
        per_user={name: values[chosen] for name, values in per_user.items()},
        overall=row_metrics(pairs.labels, scores),
        users_left_out=int((~chosen).sum()),
    )


def listed_metrics(pairs: ListedPairs, scores: NDArray[np.float64], k: int) -> dict[str, NDArray[np.float64]]:
    """The metrics of every user: metric -> (n,). Ties share their mean rank, counted from 0.

    auc     share of (positive, negative) pairs that are in the right order, a tie counting one half
    hit     1 if a positive has a rank below k
    recall  share of the positives with a rank below k
    ndcg    sum of gain / log2(rank + 2) over ranks below k, as a share of the best possible
    map     mean over the positives of (positives up to and including it / rank + 1), ranks below k
    """
    rows, n = pairs.rows, len(pairs.users)
    ranks = _ranks(rows, scores)
    labels = pairs.labels.astype(np.float64)
    positives = np.bincount(rows, labels, n).astype(np.float64)
    inside = (ranks < k) * labels
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "auc": _auc(rows, ranks, labels, n),
            "ndcg": np.bincount(rows, pairs.gains * (ranks < k) / np.log2(ranks + 2), n) / _ideal(pairs, k),
            "hit": np.minimum(np.bincount(rows, inside, n), 1.0),
            "recall": np.bincount(rows, inside, n) / positives,
            "map": _average_precision(rows, ranks, inside, positives, k),
        }


def row_metrics(labels: NDArray[np.bool_], scores: NDArray[np.float64]) -> dict[str, float]:
    """Log loss and calibration over all rows, scores being logits.

    logloss      mean of log(1 + exp(-s)) over positives and of log(1 + exp(s)) over the others
    calibration  mean distance of predicted and observed rate over ten bins of equal size, weighted by size
    """
    signs = np.where(labels, -1.0, 1.0)
    chances = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
    bins = np.array_split(np.argsort(scores, kind="stable"), min(_BINS, len(scores)))
    gaps = [abs(chances[b].mean() - labels[b].mean()) * len(b) for b in bins]
    return {
        "logloss": float(np.logaddexp(0, signs * scores).mean()),
        "calibration": float(sum(gaps) / len(scores)),
    }


def _ranks(rows: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each score among those of its user, from 0, ties sharing their mean rank: (m,)."""
    order = np.lexsort((-scores, rows))
    changes = (np.diff(rows[order], prepend=-1) != 0) | (np.diff(scores[order], prepend=np.nan) != 0)
    groups = np.cumsum(changes) - 1  # runs of equal scores of one user
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    first = np.searchsorted(rows[order], rows[order])  # where the user of each place begins
    mean = starts[groups] - first + (sizes[groups] - 1) / 2
    ranks = np.empty(len(scores))
    ranks[order] = mean
    return ranks


def _auc(
    rows: NDArray[np.int64], ranks: NDArray[np.float64], labels: NDArray[np.float64], n: int
) -> NDArray[np.float64]:
    """1 - (mean rank of positives - (P - 1) / 2) / N for each user; NaN without both labels: (n,)."""
    positives = np.bincount(rows, labels, n)
    negatives = np.bincount(rows, 1 - labels, n)
    mean = np.bincount(rows, ranks * labels, n) / positives
    auc = 1 - (mean - (positives - 1) / 2) / negatives
    return np.where((positives > 0) & (negatives > 0), auc, np.nan)


def _ideal(pairs: ListedPairs, k: int) -> NDArray[np.float64]:
    """The discounted gain of the best possible order of each user's items: (n,)."""
    rows = pairs.rows
    order = np.lexsort((-pairs.gains, rows))
    place = np.arange(len(order)) - pairs.starts[rows[order]]
    gains = pairs.gains[order] * (place < k) / np.log2(place + 2)
    return np.bincount(rows[order], gains, len(pairs.users)).astype(np.float64)


def _average_precision(
    rows: NDArray[np.int64],
    ranks: NDArray[np.float64],
    inside: NDArray[np.float64],
    positives: NDArray[np.float64],
    k: int,
) -> NDArray[np.float64]:
    order = np.lexsort((ranks, rows))
    found = np.cumsum(inside[order])
    before = np.concatenate([[0.0], found])[np.searchsorted(rows[order], rows[order])]
    precision = inside[order] * (found - before) / (ranks[order] + 1)
    return np.bincount(rows[order], precision, len(positives)) / np.minimum(positives, k)
