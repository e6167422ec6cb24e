"""What a log without propensities can say about lists: how much of each list it has seen, and how it fared.

A ladder for every recommended slot:

1. shown to this user: the log has the user's own answer;
2. similar users: shown at least ENOUGH times among users of the same cell, whose rate stands in;
3. item known: shown at least ENOUGH times to anyone, also before the period, so that something is known;
4. never shown, or so rarely that nothing is known.

Expected clicks are bounded by pricing levels 3 and 4 at 0 and at 1. Evidence must come from a period that the
recommender was not trained on: it likes the pairs that were clicked in its own training data.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.data.vocabulary import UNKNOWN
from towpath.stats.intervals import gamma_interval

Codes = NDArray[np.integer[Any]]
Values = NDArray[np.float64]

ENOUGH = 20
LEVELS = ("shown_to_user", "similar_users", "item_known", "never_shown")


@dataclass(frozen=True)
class Shown:
    """Everything that was shown in a period, (n,) each; the clicks alone where `complete` is false."""

    users: Codes
    items: Codes
    clicked: NDArray[np.bool_]
    n_items: int
    complete: bool = True
    by_clicks: bool = False  # whether rows are here because of their clicks: rates then say nothing
    earlier: NDArray[np.int64] | None = None  # (items,) how often each item was shown before the period

    def __len__(self) -> int:
        return len(self.users)


@dataclass(frozen=True)
class Answers:
    """The pairs whose impressions count, (m,) each: what was answered, and how much one impression counts.

    The mean over slots of the observed rates is sum (own + similar) clicks.
    """

    shown: Values
    clicks: Values
    own: Values  # weight of one impression, from slots on level 1
    similar: Values  # from slots on level 2


@dataclass(frozen=True)
class ExpectedClicks:
    """Clicks per recommended slot: `low` and `high` price what is not known at 0 and at 1.

    `alike` adds the chance in the observed clicks, at 95 %, and holds if similar users click alike, `sure`
    does not lean on them: it prices level 2 at 0 and at 1 as well. Both are about the users who have lists,
    and assume that clicks are independent and that a pair's chance of a click has not changed since.
    """

    low: float
    high: float
    alike: tuple[float, float]
    sure: tuple[float, float]

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """Both pairs of ends as lists."""
        return {
            "low": self.low,
            "high": self.high,
            "interval": list(self.sure),
            "interval_if_similar_users_click_alike": list(self.alike),
        }


@dataclass(frozen=True)
class Evidence:
    """What the log has seen of every recommended slot; the first three (users, k)."""

    lists: Codes
    levels: NDArray[np.int64]  # 1 to 4, 0 for an empty slot
    rates: Values  # observed click rate; NaN where the log has none to offer
    answers: Answers | None  # None where the log has no rates to offer

    @property
    def slots(self) -> int:
        """How many recommendations there are."""
        return int((self.levels > 0).sum())

    def shares(self) -> dict[str, float]:
        """The share of the slots on each level."""
        counts = np.bincount(self.levels.ravel(), minlength=5)[1:]
        return {name: float(n / max(1, self.slots)) for name, n in zip(LEVELS, counts, strict=True)}

    def expected_clicks(self) -> ExpectedClicks:
        """What the slots would earn, as far as the log can tell.

        Pairs that were picked by their clicks may have any chance of one.
        """
        low, high = self._worth(0.0), self._worth(1.0)
        if self.answers is None:
            return ExpectedClicks(low, high, (0.0, 1.0), (0.0, 1.0))
        alike = _span(self.answers, self.answers.own + self.answers.similar)
        return ExpectedClicks(low, high, alike, _span(self.answers, self.answers.own))

    def by_item(self, n_items: int) -> Values:
        """How often each item is recommended on each level: (items, 4)."""
        return self._table(self.lists, n_items)

    def by_segment(self, segments: Codes) -> Values:
        """The same for the segment (users,) of each user: (segments, 4)."""
        spread = np.broadcast_to(np.asarray(segments)[:, None], self.levels.shape)
        return self._table(spread, int(np.max(segments)) + 1)

    def _table(self, groups: Codes, n_groups: int) -> Values:
        real = self.levels > 0
        flat = groups[real].astype(np.int64) * 4 + self.levels[real] - 1
        return np.bincount(flat, minlength=4 * n_groups).reshape(n_groups, 4).astype(np.float64)

    def _worth(self, price: float) -> float:
        """The mean over slots of the observed rate, or of the price where there is none."""
        real = self.levels > 0
        return float(np.where(np.isnan(self.rates), price, self.rates)[real].mean()) if real.any() else 0.0


def find_evidence(lists: Codes, users: Codes, shown: Shown, cells: Codes) -> Evidence:
    """The evidence for lists (b, k) of these users (b,); `cells` (all users,) says who is like whom.

    Where only clicks are logged, a click is evidence for its own pair, and no rate of anything can be had.
    Where rows were picked by their clicks, they tell what was shown and nothing about clicks.
    """
    lists = np.asarray(lists, dtype=np.int64)
    real = lists != UNKNOWN
    items = np.where(real, lists, 0)
    own = _Counts(np.asarray(shown.users, dtype=np.int64) * shown.n_items + shown.items, shown.clicked)
    near = _Counts(cells[shown.users].astype(np.int64) * shown.n_items + shown.items, shown.clicked)
    own_places = own.places(np.asarray(users, dtype=np.int64)[:, None] * shown.n_items + items)
    near_places = near.places(cells[users].astype(np.int64)[:, None] * shown.n_items + items)
    counts = np.bincount(shown.items, minlength=shown.n_items)
    anywhere = (counts if shown.earlier is None else counts + shown.earlier)[items]
    levels = np.select(
        [~real, own.shown[own_places] > 0, near.shown[near_places] >= ENOUGH, anywhere >= ENOUGH],
        [0, 1, 2, 3],
        4,
    )
    has_rates = shown.complete and not shown.by_clicks
    rates = np.select(
        [(levels == 1) & (not shown.by_clicks), (levels == 2) & has_rates],
        [own.rates[own_places], near.rates[near_places]],
        np.nan,
    )
    if not has_rates:
        return Evidence(lists, levels, rates, None)
    slots = int(real.sum())
    by_own = own.per_impression(own_places[levels == 1], slots)
    by_near = near.per_impression(near_places[levels == 2], slots)
    # An impression can vouch for its own pair and for similar users.
    owners, things = np.divmod(own.keys, shown.n_items)
    similar = by_near[near.places(cells[owners].astype(np.int64) * shown.n_items + things)]
    counted = by_own[:-1] + similar > 0
    columns = (own.shown[:-1], own.clicks[:-1], by_own[:-1], similar)
    answers = Answers(*(column[counted].astype(np.float64) for column in columns))
    return Evidence(lists, levels, rates, answers)


def _span(answers: Answers, weights: Values) -> tuple[float, float]:
    """The mean over slots that these weights (m,) and the answers leave possible; the rest is 0 to 1.

    sum weights clicks is a weighted sum of independent clicks, whose weights follow from the lists alone and
    so know nothing of the clicks. Its gamma interval is made for Poisson counts, which vary more than clicks;
    where most impressions were clicked that is far too wide, and the ones without a click are counted.
    """
    known, clicked = float(weights @ answers.shown), float(weights @ answers.clicks)
    mirrored = clicked > known / 2
    counts = answers.shown - answers.clicks if mirrored else answers.clicks
    found = gamma_interval(len(weights) * weights, counts)
    low, high = max(0.0, found.low), min(known, found.high)
    low, high = (known - high, known - low) if mirrored else (low, high)
    return low, min(1.0, high + 1 - known)


class _Counts:
    """How often each key was shown and clicked; the last place is that of a key that never was."""

    def __init__(self, keys: NDArray[np.int64], clicked: NDArray[np.bool_]) -> None:
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(keys) else np.zeros(0, int)
        clicks = np.add.reduceat(clicked[order].astype(np.int64), starts) if len(keys) else starts
        self.keys = ordered[starts]
        self.shown = np.append(np.diff(np.r_[starts, len(keys)]), 0) if len(keys) else np.zeros(1, int)
        self.clicks = np.append(clicks, 0)
        self.rates = self.clicks / np.maximum(1, self.shown)

    def places(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where these keys, any shape, stand."""
        if len(self.keys) == 0:
            return np.zeros(keys.shape, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, len(self.keys))

    def per_impression(self, places: NDArray[np.int64], slots: int) -> Values:
        """How much one impression of each key counts if these places (n,) of all `slots` rest on it."""
        resting = np.bincount(places, minlength=len(self.shown))
        return np.asarray(resting / np.maximum(1, self.shown * slots))
