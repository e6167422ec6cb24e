"""What share of what a model would show has the log seen, and what follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.bandit.overlap import Overlap
from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import Vocabulary
from towpath.diagnostics.bounds import SgnsDivergence
from towpath.diagnostics.computed_bounds import ComputedBounds, RunNumbers, compute_bounds, sgns_of
from towpath.diagnostics.distances import Distances, Measuring, Pairs, measure_distances
from towpath.diagnostics.evidence import ENOUGH, LEVELS, Evidence
from towpath.diagnostics.list_overlap import depth_of, overlap_of, without_propensity
from towpath.diagnostics.log_view import HeldOut, held_out_of, users_with_lists, view_log
from towpath.models.scorer import Scorer
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng
from towpath.training.weighed_pairs import PairValues, WeighedPairs

SEGMENTS = ("fewest events", "few events", "many events", "most events")
# So many of the items with most slots without evidence are listed.
MOST_ITEMS = 30


@dataclass(frozen=True)
class Players:
    """What a transport game has learned besides the model; empty for other methods."""

    weighted: WeighedPairs | None = None  # training pairs with the weights of w
    critic: PairValues | None = None  # g


@dataclass(frozen=True)
class ItemEvidence:
    """An item that takes slots without evidence."""

    item: str
    slots: int
    without_evidence: int


@dataclass(frozen=True)
class Diagnosis:
    """What the log can vouch for."""

    k: int
    users: int
    period: str  # which rows the evidence comes from
    rows: int
    complete: bool  # whether these rows say what was shown and not clicked
    by_clicks: bool  # whether these rows are there because of their clicks
    evidence: Evidence
    items: tuple[ItemEvidence, ...]  # those with most slots without evidence, at most MOST_ITEMS
    by_segment: NDArray[np.float64]  # (segments, 4), users by how many training events they have
    overlap: Overlap | None  # None where no propensities are logged
    distances: Distances
    bounds: ComputedBounds
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
        return {
            "evidence": self.evidence.shares(),
            "expected_clicks": self.evidence.expected_clicks().to_json(),
            "ess_share": self.ess_share,
            "warnings": list(self.warnings),
            "k": self.k,
            "users": self.users,
            "slots": self.evidence.slots,
            "period": self.period,
            "rows": self.rows,
            "impressions_logged": self.complete,
            "picked_by_clicks": self.by_clicks,
            "divergence": 1 / self.ess_share if self.ess_share else None,
            "overlap": None if self.overlap is None else self.overlap.to_json(),
            "distances": asdict(self.distances),
            "bounds": [bound.to_json() for bound in self.bounds.bounds],
            "bounds_left_out": list(self.bounds.left_out),
            "sgns": asdict(self.sgns),
            "segments": {
                name: dict(zip(LEVELS, row.tolist(), strict=True))
                for name, row in zip(SEGMENTS, self.by_segment, strict=False)
            },
            "items": [asdict(item) for item in self.items],
            "remarks": list(self.remarks),
        }


def diagnose(
    scorer: Scorer,
    split: Split,
    *,
    k: int = 10,
    held_out: HeldOut | None = None,
    players: Players | None = None,
    seed: int = 0,
) -> Diagnosis:
    """The evidence that the held-out rows have for the lists of `scorer`.

    Lists leave out what users have in training.
    """
    rng, players = Rng(seed), players or Players()
    view = view_log(split, held_out or held_out_of(split), rng)
    rows = view.held_out.rows
    users = users_with_lists(split.train, rng)
    lists = top_k_lists(scorer, users, split.train.histories, depth_of(rows, k, split.train.n_items)).items
    evidence = view.evidence(lists[:, :k], users)
    overlap = overlap_of(rows, users, lists, k)
    recommended = _pairs(users, lists[:, :k])
    weighted = players.weighted
    reweighted = None if weighted is None else Pairs(weighted.users, weighted.items, weighted.weights)
    distances = measure_distances(
        Pairs(rows.users, rows.items), recommended, reweighted, Measuring(view.vectors, rng, players.critic)
    )
    rho = distances.weighted_to_recommended or distances.log_to_recommended
    numbers = RunNumbers(view.held_out, recommended, view.vectors, rho, overlap, weighted)
    return Diagnosis(
        k=k,
        users=len(users),
        period=view.held_out.period,
        rows=len(rows),
        complete=view.shown.complete,
        by_clicks=view.shown.by_clicks,
        evidence=evidence,
        items=_items_without_evidence(evidence, split.train.item_ids),
        by_segment=evidence.by_segment(_segments(split.train, users)),
        overlap=None if overlap is None else overlap.overlap,
        distances=distances,
        bounds=compute_bounds(numbers, rng),
        sgns=sgns_of(rows, recommended, view.cells),
        remarks=(*view.held_out.remarks, *_incomplete(rows)),
    )


def _items_without_evidence(evidence: Evidence, ids: Vocabulary) -> tuple[ItemEvidence, ...]:
    """The items with most slots on the last two levels, most first."""
    by_item = evidence.by_item(len(ids))
    slots, unknown = by_item.sum(axis=1), by_item[:, 2:].sum(axis=1)
    worst = np.argsort(-unknown, kind="stable")[:MOST_ITEMS]
    worst = worst[unknown[worst] > 0]
    named = zip(ids.ids(worst), slots[worst], unknown[worst], strict=True)
    return tuple(ItemEvidence(str(item), int(all_of_it), int(part)) for item, all_of_it, part in named)


def _incomplete(rows: Interactions) -> tuple[str, ...]:
    missing = without_propensity(rows)
    if not missing:
        return ()
    return (f"{missing:,} of {len(rows):,} rows have no propensity, so what propensities say is left out",)


def _segments(train: Interactions, users: NDArray[np.int64]) -> NDArray[np.int64]:
    """The quarter that each of these users is in, by training events: (users,)."""
    events = train.histories.lengths[users]
    return np.searchsorted(np.quantile(events, [0.25, 0.5, 0.75]), events, side="left").astype(np.int64)


def _pairs(users: NDArray[np.int64], lists: NDArray[np.int64]) -> Pairs:
    """Every filled slot of the lists as a pair."""
    real = lists >= 0
    return Pairs(np.repeat(users, real.sum(axis=1)), lists[real])


def _evidence_warnings(found: Diagnosis) -> Sequence[str]:
    """What the ladder says, most important first."""
    shares: Mapping[str, float] = found.evidence.shares()
    clicks = found.evidence.expected_clicks()
    said = []
    if not found.complete:
        said.append(
            "The log holds clicks alone. It can vouch only for pairs that were clicked; what was shown and "
            "not clicked, or never shown, looks the same."
        )
    if found.by_clicks:
        said.append(
            "The held-out rows were picked by their clicks (everyone's last two), so their click rates say "
            "nothing, and expected clicks may be anything. Fit with --split time or --split random, or give "
            "a log with --log."
        )
    unknown = shares["item_known"] + shares["never_shown"]
    if unknown > 0.2:
        said.append(
            f"{unknown:.0%} of what the model would show has no evidence of its own: not shown to that user, "
            f"nor {ENOUGH} times to users like them. Expected clicks per slot may be anything from "
            f"{clicks.low:.3f} to {clicks.high:.3f}."
        )
    if shares["never_shown"] > 0.05:
        said.append(
            f"{shares['never_shown']:.0%} of the slots hold items that were shown fewer than {ENOUGH} times "
            "to anyone: only showing them can tell."
        )
    return said
