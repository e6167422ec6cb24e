"""A scorer's worth on one part of a split, under one named protocol."""

from collections.abc import Callable, Iterable
from typing import cast, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.negatives import PairSet
from towpath.data.split import Part, Split
from towpath.errors import ConfigError, DataError, unknown_name
from towpath.evaluation.metrics import (
    Ranks,
    hit_at_k,
    mrr_at_k,
    ndcg_at_k,
    recall_at_k,
    rel_at_k,
    relevance_of_lists,
)
from towpath.evaluation.protocols import (
    NEGATIVES,
    NOTHING,
    PROTOCOLS,
    Block,
    Negatives,
    Protocol,
    blocks_of,
    sample_negatives,
)
from towpath.evaluation.ranking import HIDDEN, rank_targets, top_k
from towpath.evaluation.result import Evaluation
from towpath.evaluation.scoring import judging, score_candidates
from towpath.evaluation.task import Task, task_of
from towpath.models.scorer import Scorer

# True relevance of every pair: an array (users, items), or a function of user codes (n, 1) and items (n, k).
Relevance = NDArray[np.floating] | Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.floating]]


def evaluate(
    scorer: Scorer,
    split: Split,
    *,
    protocol: Protocol = "full",
    on: Part = "test",
    k: int = 10,
    relevance: Relevance | None = None,
    negatives_seed: int = 0,
) -> Evaluation:
    """Hit, NDCG, recall, MRR and relevance at k of every judged user; under `full` also what the lists cover.

    The definitions are in docs/metrics.md. A scorer sees training histories when validation is judged, and
    training plus validation when test is. `relevance` is the true relevance where it is known: rel is then
    its sum over the list, otherwise the number of targets in the list. `negatives_seed` is no seed of the
    fit: keep it fixed, so that all scorers are ranked against the same negatives.
    """
    _check(protocol, on, k, split.train.n_items)
    if protocol == "truth" and relevance is None:
        raise _no_truth()
    task = task_of(split, on)
    negatives = sample_negatives(protocol, task, negatives_seed)
    # Sampled candidates are no list that anyone would be shown, unless their true relevance is asked for.
    places = k if negatives is None or relevance is not None else 0
    with judging(scorer):
        values, lists = _judge(scorer, task, blocks_of(task, negatives), places)
    ranks = _ranks(values, task, negatives)
    per_user = {f.__name__.removesuffix("_at_k"): f(ranks, k) for f in _METRICS}
    if relevance is not None:
        per_user["rel"] = relevance_of_lists(_relevance_of(relevance, task.users, lists), lists)
    overall = _of_the_whole(task, lists) if negatives is None else {}
    if protocol == "truth":
        per_user, overall = {"rel": per_user["rel"]}, overall | _support(task, lists)
    return Evaluation(protocol, on, k, task.users, per_user, overall, task.users_left_out)


def _no_truth() -> DataError:
    return DataError(
        "The protocol truth needs the true relevance of every pair, which only simulated worlds have; make "
        "one by towpath simulate, or use the protocol full."
    )


_METRICS = (hit_at_k, ndcg_at_k, recall_at_k, mrr_at_k, rel_at_k)


class Validator:
    """Hit and NDCG at k on validation under `full`, fast enough to be asked every epoch.

    What does not change from one epoch to the next (targets, what is hidden, blocks) is made once.
    """

    def __init__(self, split: Split, k: int = 10) -> None:
        _check("full", "validation", k, split.train.n_items)
        self.k = k
        self._task = task_of(split, "validation")
        self._blocks = list(blocks_of(self._task, None))

    def __call__(self, scorer: Scorer) -> dict[str, float]:
        """The means over users, as `evaluate(scorer, split, on="validation", k=k)` has them."""
        with judging(scorer):
            values, _ = _judge(scorer, self._task, self._blocks, 0)
        ranks = _ranks(values, self._task, None)
        return {
            "hit": float(hit_at_k(ranks, self.k).mean()),
            "ndcg": float(ndcg_at_k(ranks, self.k).mean()),
        }


def refuse_impossible(split: Split, protocol: str, on: str, k: int) -> None:
    """Nothing, unless the split cannot be judged in this way; to be asked before a fit that takes long."""
    _check(protocol, on, k, split.train.n_items)
    sample_negatives(cast(Protocol, protocol), task_of(split, cast(Part, on)), seed=0)  # both just checked


def _check(protocol: str, on: str, k: int, n_items: int) -> None:
    """Raises if there is no such protocol or part, or no list of k items."""
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    if on not in get_args(Part):
        raise unknown_name("part to judge on", on, get_args(Part))
    candidates = n_items if protocol in ("full", "truth") else NEGATIVES + 1
    if not 0 < k <= candidates:
        raise ConfigError(
            f"k must lie between 1 and the {candidates:,} candidates of the {protocol} protocol, "
            f"but it is {k:,}."
        )


def _judge(
    scorer: Scorer, task: Task, blocks: Iterable[Block], places: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The rank of every target (m,) and every user's list of the best `places` candidates (n, places)."""
    # Filled in place. Small results kept from every block would lie between the large tensors that are freed
    # and hinder their reuse: at 100,000 x 100,000 the process grew to 20 GB that way.
    ranks = np.empty(len(task.targets))
    lists = np.empty((len(task.users), places), dtype=np.int64)
    target = user = 0
    for block in blocks:
        scores = score_candidates(scorer, block.users, task.seen, block.items, block.hidden)
        found = rank_targets(scores, block.rows, block.columns, name=_namer(task, block))
        ranks[target : target + len(found)] = found.cpu().numpy()
        if places:
            lists[user : user + len(scores)] = _best_items(scores, block, places)
        target, user = target + len(found), user + len(scores)
    return ranks, lists


def _namer(task: Task, block: Block) -> Callable[[int], str]:
    """What to call the user in a row of the block."""
    return lambda row: f"user {task.split.train.user_ids.ids(block.users[row : row + 1])[0]!r}"


def _best_items(scores: Tensor, block: Block, k: int) -> NDArray[np.int64]:
    """The codes of each user's k best candidates, NOTHING where there are fewer: (b, k)."""
    values, columns = top_k(scores, k)
    items = block.items.to(scores.device).expand(len(scores), -1).gather(1, columns)
    return items.where(values > HIDDEN, NOTHING).cpu().numpy()


def _ranks(values: NDArray[np.float64], task: Task, negatives: Negatives | None) -> Ranks:
    """The ranks of all targets; c further copies of a target at rank r take the ranks r + 1 to r + c."""
    targets = np.diff(task.starts)
    if negatives is None or not negatives.copies.any():
        return Ranks(values, task.rows, targets)
    times = negatives.copies + 1
    nth = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return Ranks(np.repeat(values, times) + nth, np.repeat(task.rows, times), targets, nth > 0)


def _relevance_of(
    relevance: Relevance, users: NDArray[np.int64], lists: NDArray[np.int64]
) -> NDArray[np.floating]:
    """True relevance of every place of the lists, (n, k); that of an empty place is any number."""
    items = np.maximum(lists, 0)
    return relevance(users[:, None], items) if callable(relevance) else relevance[users[:, None], items]


def _of_the_whole(task: Task, lists: NDArray[np.int64]) -> dict[str, float]:
    """What all lists (n, k) together are like.

    coverage     share of the catalogue that is in anyone's list
    popularity   mean over all places of (training events of the item / users with training events)
    """
    train = task.split.train
    shown = np.bincount(lists[lists >= 0], minlength=task.n_items)
    trained_users = np.count_nonzero(train.histories.lengths)
    return {
        "coverage": float(np.count_nonzero(shown) / task.n_items),
        "popularity": float((shown * train.item_counts).sum() / (shown.sum() * trained_users)),
    }


def _support(task: Task, lists: NDArray[np.int64]) -> dict[str, float]:
    """shown_share: the share of all places whose pair the training log has shown already."""
    listed = lists >= 0
    users = np.broadcast_to(task.users[:, None], lists.shape)[listed]
    known = PairSet(task.split.train.rows).contains(users, lists[listed])
    return {"shown_share": float(known.mean())}
