"""A scorer's worth on one part of a split, under one named protocol."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import cast, get_args

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.data.negatives import PairSet
from towpath.data.repeats import times_of
from towpath.data.split import Part, Split
from towpath.errors import ConfigError, DataError, unknown_name
from towpath.evaluation.listed import evaluate_listed, listed_candidates, listed_pairs
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
    PROTOCOLS,
    EvalProtocol,
    Negatives,
    TargetBlock,
    blocks_of,
    sample_negatives,
)
from towpath.evaluation.result import Evaluation, named_by_k
from towpath.evaluation.task import RankingTask, task_of
from towpath.evaluation.weighted import target_propensities, weighted_metrics
from towpath.models.scorer import Scorer
from towpath.ranking.lists import best_of_block
from towpath.ranking.resting import NOTHING_RESTS, Rest, Resting, rest_by
from towpath.ranking.scoring import score_block
from towpath.ranking.top_k import rank_targets

# True relevance of every pair: an array (users, items), or a function of user codes (n, 1) and items (n, k).
Relevance = NDArray[np.floating] | Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.floating]]

# The ranks of the targets of a block (t,), and its users' lists of the best candidates (b, slots).
RankedBlock = tuple[NDArray[np.float64], NDArray[np.int64]]


@dataclass(frozen=True)
class EvaluationOptions:
    """What some protocols need to know besides the split.

    `negatives_seed` (sampled, paper) is no seed of the fit: keep it fixed, so that all scorers are ranked
    against the same negatives. `graded` (listed) takes values as gains. `examination` (ips, snips) is the
    chance that each position is looked at, from 1: (positions,). `resting` lets rest what was shown before,
    as of each user's first row of the part; a target that it hides is missed.
    """

    negatives_seed: int = 0
    graded: bool = False
    examination: NDArray[np.float64] | None = None
    resting: Resting = NOTHING_RESTS


def evaluate(
    scorer: Scorer,
    split: Split,
    *,
    protocol: EvalProtocol = "full",
    on: Part = "test",
    k: int | Sequence[int] = 10,
    relevance: Relevance | None = None,
    options: EvaluationOptions = EvaluationOptions(),  # noqa: B008  # frozen
    rank: Callable[[int], Iterable[RankedBlock]] | None = None,
) -> Evaluation:
    """Hit, NDCG, recall, MRR and relevance at k for every evaluated user; `full` adds what the lists cover.

    The definitions are in docs/metrics.md. A scorer sees training histories when validation is evaluated, and
    training plus validation when test is. `relevance` is the true relevance where it is known: rel is then
    its sum over the list, otherwise the number of targets in the list. With several k, metrics have the
    length of the list in their names. Blocks are ranked here, unless `rank` has it done elsewhere: it is told
    the length of the lists and gives the blocks in order.
    """
    ks = (k,) if isinstance(k, int) else tuple(k)
    for one in ks:
        _check(protocol, on, one, split.train.n_items)
    if protocol == "truth" and relevance is None:
        raise _no_truth()
    if protocol == "listed":
        return _listed(scorer, split, on, ks, options)
    job = ranking_job(split, protocol, on, options)
    task, negatives = job.task, job.negatives
    # Sampled candidates are no list that anyone would be shown, unless their true relevance is asked for.
    slots = max(ks) if negatives is None or relevance is not None else 0
    values, lists = _gathered(task, slots, job.ranked(scorer, slots) if rank is None else rank(slots))
    ranks = _ranks(values, task, negatives)
    if protocol in ("ips", "snips"):
        chances = target_propensities(task, split.part(on), options.examination)
        how = {"self_normalised": protocol == "snips"}
        per_user = named_by_k({one: weighted_metrics(ranks, chances, one, **how) for one in ks})
    else:
        per_user = named_by_k({one: _metrics(ranks, one, relevance, (task, lists)) for one in ks})
    overall = _of_the_whole(task, lists) if negatives is None else {}
    if protocol == "truth":
        per_user = {name: values for name, values in per_user.items() if name.startswith("rel")}
        overall |= _support(task, lists)
    return Evaluation(protocol, on, max(ks), task.users, per_user, overall, task.users_left_out)


@dataclass(frozen=True)
class RankingJob:
    """All that is to be ranked: targets, negatives where they are sampled, and what rests."""

    task: RankingTask
    negatives: Negatives | None
    rest: Rest | None

    def ranked(self, scorer: Scorer, slots: int, part: int = 0, parts: int = 1) -> Iterator[RankedBlock]:
        """The blocks in order, or every so many-th of them from `part` on."""
        blocks = islice(blocks_of(self.task, self.negatives), part, None, parts)
        return _ranked(scorer, self.task, blocks, slots, self.rest)


def ranking_job(split: Split, protocol: EvalProtocol, on: Part, options: EvaluationOptions) -> RankingJob:
    """What evaluating this part under this protocol ranks."""
    task = task_of(split, on)
    negatives = sample_negatives(protocol, task, options.negatives_seed)
    return RankingJob(task, negatives, _rest(split, on, options.resting))


def evaluate_candidates(
    scorer: Scorer, split: Split, candidates: Interactions, *, on: Part = "test", k: int | Sequence[int] = 10
) -> Evaluation:
    """The targets of each user ranked among the candidates that are given for them."""
    pairs = listed_candidates(candidates, split.part(on))
    seen = (split.train if on == "validation" else split.before_test).histories
    ks = (k,) if isinstance(k, int) else tuple(k)
    found = evaluate_listed(scorer, pairs, seen, protocol="candidates", on=on, ks=ks)
    return replace(found, overall={})  # unlabelled candidates have no log loss


def _listed(
    scorer: Scorer, split: Split, on: Part, ks: tuple[int, ...], options: EvaluationOptions
) -> Evaluation:
    part = split.part(on)
    if part.impressions is None:
        raise DataError(
            f"The protocol listed ranks what the {on} part says was shown, but it holds positives alone; "
            "name the column of labels with --label-col, or use the protocol full."
        )
    seen = (split.train if on == "validation" else split.before_test).histories
    pairs = listed_pairs(part, graded=options.graded)
    pairs = pairs.of_users(split.train.histories.lengths > 0)
    return evaluate_listed(scorer, pairs, seen, protocol="listed", on=on, ks=ks)


def _metrics(
    ranks: Ranks,
    k: int,
    relevance: Relevance | None,
    listed: tuple[RankingTask, NDArray[np.int64]],
) -> dict[str, NDArray[np.float64]]:
    """Every metric at one length of the list."""
    per_user = {f.__name__.removesuffix("_at_k"): f(ranks, k) for f in _METRICS}
    if relevance is not None:
        task, lists = listed[0], listed[1][:, :k]
        per_user["rel"] = relevance_of_lists(_relevance_of(relevance, task.users, lists), lists)
    return per_user


def _no_truth() -> DataError:
    return DataError(
        "The protocol truth needs the true relevance of every pair, which only simulated worlds have; make "
        "one by towpath simulate create, or use the protocol full."
    )


_METRICS = (hit_at_k, ndcg_at_k, recall_at_k, mrr_at_k, rel_at_k)


# Up to so many scores in all, a validator holds its blocks from one epoch to the next.
_HELD_SCORES = 1 << 28
# A validator ranks at most so many scores in all, but of no fewer users than this, spread evenly over all.
_VALIDATED_SCORES, _FEWEST_VALIDATED = 2 * 10**9, 1_000


class Validator:
    """Hit and NDCG at k on validation under `full`, fast enough to be asked every epoch.

    What does not change from one epoch to the next (targets, what is hidden, blocks) is made once; the blocks
    of a large catalogue are made anew, which takes no time compared with scoring them, rather than held.
    Of data with more than two billion pairs of a user and an item it ranks for a sample of users, the same
    ones every time; `remarks` then says so.
    """

    def __init__(self, split: Split, k: int = 10) -> None:
        _check("full", "validation", k, split.train.n_items)
        self.k = k
        self.remarks: tuple[str, ...] = ()
        self._task = task_of(split, "validation")
        most = max(_FEWEST_VALIDATED, _VALIDATED_SCORES // split.train.n_items)
        if (users := len(self._task.users)) > most:
            some = np.zeros(split.train.n_users, dtype=bool)
            some[self._task.users[np.linspace(0, users - 1, most).astype(np.int64)]] = True
            fewer = replace(split, validation=split.validation.where(some[split.validation.users]))
            self._task = task_of(fewer, "validation")
            self.remarks = (f"Validation ranked the lists of {most:,} of {users:,} users, always the same.",)
        small = len(self._task.users) * self._task.n_items <= _HELD_SCORES
        self._held = list(blocks_of(self._task, None)) if small else None

    def __call__(self, scorer: Scorer) -> dict[str, float]:
        """The means over users, as `evaluate(scorer, split, on="validation", k=k)` has them."""
        blocks = blocks_of(self._task, None) if self._held is None else self._held
        values, _ = _gathered(self._task, 0, _ranked(scorer, self._task, blocks, 0))
        ranks = _ranks(values, self._task, None)
        return {
            "hit": float(hit_at_k(ranks, self.k).mean()),
            "ndcg": float(ndcg_at_k(ranks, self.k).mean()),
        }


def refuse_impossible(split: Split, protocol: str, on: str, k: int) -> None:
    """Nothing, unless the split cannot be evaluated in this way; to be asked before a fit that takes long."""
    _check(protocol, on, k, split.train.n_items)
    sample_negatives(
        cast(EvalProtocol, protocol), task_of(split, cast(Part, on)), seed=0
    )  # both just checked


def _check(protocol: str, on: str, k: int, n_items: int) -> None:
    """Raises if there is no such protocol or part, or no list of k items."""
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    if on not in get_args(Part):
        raise unknown_name("part to evaluate on", on, get_args(Part))
    candidates = NEGATIVES + 1 if protocol in ("sampled", "paper") else n_items
    if not 0 < k <= candidates:
        raise ConfigError(
            f"k must lie between 1 and the {candidates:,} candidates of the {protocol} protocol, "
            f"but it is {k:,}."
        )


def _ranked(
    scorer: Scorer, task: RankingTask, blocks: Iterable[TargetBlock], slots: int, rest: Rest | None = None
) -> Iterator[RankedBlock]:
    """The ranks of each block's targets, and its users' lists."""
    for block in blocks:
        scores = score_block(scorer, block.candidates, task.seen)
        if rest is not None:
            scores = rest(scores, block.candidates.users, block.candidates.items.numpy())
        found = rank_targets(scores, block.rows, block.columns, name=_namer(task, block)).cpu().numpy()
        lists = best_of_block(scores, block.candidates, slots) if slots else np.empty((len(scores), 0), int)
        yield found, lists


def _gathered(
    task: RankingTask, slots: int, ranked: Iterable[RankedBlock]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The rank of every target (m,) and every user's list of the best `slots` candidates (n, slots)."""
    # Filled in place. Small results kept from every block would lie between the large tensors that are freed
    # and hinder their reuse: at 100,000 x 100,000 the process grew to 20 GB that way.
    ranks = np.empty(len(task.targets))
    lists = np.empty((len(task.users), slots), dtype=np.int64)
    target = user = 0
    for found, listed in ranked:
        ranks[target : target + len(found)] = found
        lists[user : user + len(listed)] = listed
        target, user = target + len(found), user + len(listed)
    return ranks, lists


def _rest(split: Split, on: Part, resting: Resting) -> Rest | None:
    """What rests when each user's first row of this part is about to be shown."""
    if resting == NOTHING_RESTS:
        return None
    log, part = (split.train if on == "validation" else split.before_test).rows, split.part(on).rows
    now = np.full(log.n_users, times_of(log).max(initial=0), dtype=np.int64)
    first = np.full(log.n_users, np.iinfo(np.int64).max)
    np.minimum.at(first, part.users, times_of(part))
    return rest_by(log, resting, np.where(first < np.iinfo(np.int64).max, first, now))


def _namer(task: RankingTask, block: TargetBlock) -> Callable[[int], str]:
    """What to call the user in a row of the block."""
    users = block.candidates.users
    return lambda row: f"user {task.split.train.user_ids.ids(users[row : row + 1])[0]!r}"


def _ranks(values: NDArray[np.float64], task: RankingTask, negatives: Negatives | None) -> Ranks:
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


def _of_the_whole(task: RankingTask, lists: NDArray[np.int64]) -> dict[str, float]:
    """What all lists (n, k) together are like.

    coverage     share of the catalogue that is in anyone's list
    popularity   mean over all slots of (training events of the item / users with training events)
    """
    train = task.split.train
    shown = np.bincount(lists[lists >= 0], minlength=task.n_items)
    trained_users = np.count_nonzero(train.histories.lengths)
    return {
        "coverage": float(np.count_nonzero(shown) / task.n_items),
        "popularity": float((shown * train.item_counts).sum() / (shown.sum() * trained_users)),
    }


def _support(task: RankingTask, lists: NDArray[np.int64]) -> dict[str, float]:
    """shown_share: the share of all slots whose pair the training log has shown already."""
    listed = lists >= 0
    users = np.broadcast_to(task.users[:, None], lists.shape)[listed]
    known = PairSet(task.split.train.rows).contains(users, lists[listed])
    return {"shown_share": float(known.mean())}
