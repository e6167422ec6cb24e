"""What share of what a model would show has the log seen, and what follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.bandit.estimators import LoggedRows, Scales, ips
from towpath.bandit.log import BanditLog
from towpath.bandit.overlap import Overlap, WeightedRows, judge_overlap
from towpath.bandit.policies import TopPolicy, apply_policy
from towpath.data.interactions import Interactions
from towpath.data.split import Split, join
from towpath.diagnostics.bounds import (
    Bound,
    Sample,
    SgnsDivergence,
    co_occurrence,
    empirical_bernstein_bound,
    empirical_divergence,
    importance_weighting_bound,
    lower_order,
    pac_bayes_bound,
    sgns_divergence,
)
from towpath.diagnostics.distances import Distances, Pairs, measure_distances
from towpath.diagnostics.evidence import ENOUGH, LEVELS, Evidence, Shown, find_evidence
from towpath.diagnostics.representation import Representation, represent
from towpath.errors import DataError
from towpath.models.scorer import Scorer
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng

# Lists are made for at most so many users, drawn at random.
MOST_USERS = 20_000
# More positions than this are no list; the log's positions are then not looked at.
MOST_POSITIONS = 50
SEGMENTS = ("fewest events", "few events", "many events", "most events")


@dataclass(frozen=True)
class Diagnosis:
    """What the log can vouch for."""

    k: int
    users: int
    period: str  # which rows the evidence comes from
    rows: int
    complete: bool  # whether these rows say what was shown and not clicked
    evidence: Evidence
    by_item: NDArray[np.float64]  # (items, 4) slots of each item on each level
    by_segment: NDArray[np.float64]  # (segments, 4), users by how many training events they have
    overlap: Overlap | None  # None where no propensities are logged
    distances: Distances
    bounds: tuple[Bound, ...]
    sgns: SgnsDivergence
    remarks: tuple[str, ...] = ()  # what was left out on the way here

    @property
    def ess_share(self) -> float | None:
        """Effective sample size as a share of the rows; None without propensities."""
        return None if self.overlap is None else self.overlap.ess_share

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before deciding on this log, a sentence each."""
        return (*_evidence_warnings(self), *(self.overlap.warnings if self.overlap else ()))

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The diagnosis as the command line prints it."""
        low, high = self.evidence.expected_clicks()
        return {
            "evidence": self.evidence.shares(),
            "expected_clicks": {"low": low.mean, "high": high.mean, "interval": [low.low, high.high]},
            "ess_share": self.ess_share,
            "warnings": list(self.warnings),
            "k": self.k,
            "users": self.users,
            "slots": self.evidence.slots,
            "period": self.period,
            "rows": self.rows,
            "impressions_logged": self.complete,
            "overlap": None if self.overlap is None else self.overlap.to_json(),
            "distances": asdict(self.distances),
            "bounds": [bound.to_json() for bound in self.bounds],
            "sgns": asdict(self.sgns),
            "segments": {
                name: dict(zip(LEVELS, row.tolist(), strict=True))
                for name, row in zip(SEGMENTS, self.by_segment, strict=False)
            },
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True)
class HeldOut:
    """The rows that a model is judged on, and where they come from."""

    rows: Interactions  # codes of the split's vocabularies; labels None where only clicks are logged
    period: str
    remarks: tuple[str, ...] = ()


def held_out_of(split: Split) -> HeldOut:
    """Validation and test together: the period that the model was not trained on."""
    return HeldOut(join(split.validation, split.test).rows, "the validation and test parts")


def diagnose(
    scorer: Scorer,
    split: Split,
    *,
    k: int = 10,
    held_out: HeldOut | None = None,
    weighted: Pairs | None = None,
    seed: int = 0,
) -> Diagnosis:
    """The evidence that the held-out rows have for the lists of `scorer`.

    `weighted` are training pairs with the weights of a transport game, to be compared with the rest. Lists
    leave out what users have in training.
    """
    judged, rng = held_out or held_out_of(split), Rng(seed)
    if len(judged.rows) == 0:
        raise DataError("A diagnosis needs rows that the model was not trained on, and there are none.")
    users = _users(split.train, rng.numpy("diagnose", "users"))
    depth = _depth(judged.rows, k, split.train.n_items)
    lists = top_k_lists(scorer, users, split.train.histories, depth).items
    vectors = represent(
        split.train.users,
        split.train.items,
        (split.train.n_users, split.train.n_items),
        rng.numpy("diagnose", "svd"),
    )
    shown = _shown(judged.rows, split.train)
    cells = vectors.cells(rng.numpy("diagnose", "cells"))
    evidence = find_evidence(lists[:, :k], users, shown, cells)
    overlap, bounds = _overlap(judged.rows, users, lists, k)
    return Diagnosis(
        k=k,
        users=len(users),
        period=judged.period,
        rows=len(judged.rows),
        complete=shown.complete,
        evidence=evidence,
        by_item=evidence.by_item(shown.n_items),
        by_segment=evidence.by_segment(_segments(split.train, users)),
        overlap=overlap,
        distances=_distances(judged.rows, (users, lists[:, :k]), weighted, vectors, rng),
        bounds=bounds,
        sgns=_sgns(judged.rows, (users, lists[:, :k]), cells),
        remarks=judged.remarks,
    )


def _users(train: Interactions, rng: np.random.Generator) -> NDArray[np.int64]:
    """Whose lists are looked at: everyone with training events, or a sample of them."""
    known = np.flatnonzero(train.histories.lengths > 0)
    return known if len(known) <= MOST_USERS else np.sort(rng.choice(known, MOST_USERS, replace=False))


def _depth(rows: Interactions, k: int, n_items: int) -> int:
    """How long lists must be, so that they have something at every position of the log."""
    deepest = 0 if rows.positions is None or rows.propensities is None else int(rows.positions.max())
    return min(n_items, max(k, deepest if deepest <= MOST_POSITIONS else 0))


def _shown(rows: Interactions, train: Interactions) -> Shown:
    clicked = np.ones(len(rows), dtype=np.bool_) if rows.labels is None else rows.labels
    complete, earlier = rows.labels is not None, train.rows.item_counts
    return Shown(rows.users, rows.items, clicked, rows.n_items, complete, earlier)


def _segments(train: Interactions, users: NDArray[np.int64]) -> NDArray[np.int64]:
    """The quarter that each of these users is in, by training events: (users,)."""
    events = train.histories.lengths[users]
    return np.searchsorted(np.quantile(events, [0.25, 0.5, 0.75]), events, side="left").astype(np.int64)


def _overlap(
    rows: Interactions, users: NDArray[np.int64], lists: NDArray[np.int64], k: int
) -> tuple[Overlap | None, tuple[Bound, ...]]:
    """What the logged propensities say about showing these lists; nothing where none are logged."""
    if rows.propensities is None or rows.labels is None:
        return None, ()
    place = np.full(rows.n_users, -1)
    place[users] = np.arange(len(users))
    log = _bandit_log(rows.where(place[rows.users] >= 0), place)
    assert log.propensities is not None  # they are those of the rows
    one = log.n_positions == 1
    policy = TopPolicy(lambda c: lists[c], rows.n_items, k if one else lists.shape[1], one)
    nothing = np.zeros((1, log.n_positions, log.n_actions))
    on_log = apply_policy(policy, log, nothing, np.zeros(len(log), dtype=np.int64))
    weights = on_log.chosen / log.propensities
    weighted = WeightedRows(weights, log.rewards, log.propensities, log.actions, on_log.mass, on_log.unseen)
    return judge_overlap(weighted), _bounds(weights, log.rewards, on_log.unseen)


def _bandit_log(rows: Interactions, place: NDArray[np.int64]) -> BanditLog:
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


def _bounds(
    weights: NDArray[np.float64], rewards: NDArray[np.float64], uncovered: float
) -> tuple[Bound, ...]:
    """Bounds on the share of slots that are not clicked, with the divergence of the sample plugged in."""
    if not weights.any():
        return ()
    risk = ips(LoggedRows(weights, 1 - rewards, 0 * rewards, 0 * rewards), Scales()).value
    most = float(weights.max())
    sample = Sample(risk, len(weights), most, empirical_divergence(weights))
    found = (
        importance_weighting_bound(sample),
        empirical_bernstein_bound(weights * (1 - rewards), most),
        pac_bayes_bound(sample, kl=0.0, uncovered=uncovered),
        lower_order(sample.divergence, sample.n),
    )
    plugged = "; here with the largest weight and the divergence of the sample, so nothing is guaranteed"
    return tuple(replace(one, kind="order only", says=one.says + plugged) for one in found)


def _distances(
    rows: Interactions,
    recommended: tuple[NDArray[np.int64], NDArray[np.int64]],
    weighted: Pairs | None,
    vectors: Representation,
    rng: Rng,
) -> Distances:
    return measure_distances(
        Pairs(rows.users, rows.items),
        _pairs(*recommended),
        weighted,
        vectors,
        rng.numpy("diagnose", "distances"),
    )


def _pairs(users: NDArray[np.int64], lists: NDArray[np.int64]) -> Pairs:
    """Every filled slot of the lists as a pair."""
    real = lists >= 0
    return Pairs(np.repeat(users, real.sum(axis=1)), lists[real])


def _sgns(
    rows: Interactions, recommended: tuple[NDArray[np.int64], NDArray[np.int64]], cells: NDArray[np.int64]
) -> SgnsDivergence:
    """How far log and lists are apart for skip-gram, over cells of users and quarters of items by popularity.

    Pairs themselves hardly ever occur in both.
    """
    counts = np.bincount(rows.items, minlength=rows.n_items)
    bands = np.searchsorted(np.quantile(counts, [0.5, 0.8, 0.95]), counts, side="left")
    pairs = _pairs(*recommended)
    tables = [
        np.bincount(cells[p.users] * 4 + bands[p.items], minlength=4 * (int(cells.max()) + 1)).reshape(-1, 4)
        for p in (Pairs(rows.users, rows.items), pairs)
    ]
    first, second = (co_occurrence(table.astype(np.float64)).ravel() for table in tables)
    return sgns_divergence(first, second)


def _evidence_warnings(found: Diagnosis) -> Sequence[str]:
    """What the ladder says, most important first."""
    shares: Mapping[str, float] = found.evidence.shares()
    low, high = found.evidence.expected_clicks()
    said = []
    if not found.complete:
        said.append(
            "The log holds clicks alone. It can vouch only for pairs that were clicked; what was shown and "
            "not clicked, or never shown, looks the same."
        )
    unknown = shares["item_known"] + shares["never_shown"]
    if unknown > 0.2:
        said.append(
            f"{unknown:.0%} of what the model would show has no evidence of its own: not shown to that user, "
            f"nor {ENOUGH} times to users like them. Expected clicks per slot may be anything from "
            f"{low.mean:.3f} to {high.mean:.3f}."
        )
    if shares["never_shown"] > 0.05:
        said.append(
            f"{shares['never_shown']:.0%} of the slots hold items that were shown fewer than {ENOUGH} times "
            "to anyone: only showing them can tell."
        )
    return said
