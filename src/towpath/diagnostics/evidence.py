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
from scipy.stats import norm

from towpath.data.vocabulary import UNKNOWN
from towpath.stats.estimate import Estimate
from towpath.stats.intervals import LEVEL

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
    earlier: NDArray[np.int64] | None = None  # (items,) how often each item was shown before the period

    def __len__(self) -> int:
        return len(self.users)


@dataclass(frozen=True)
class Evidence:
    """What the log has seen of every recommended slot; all (users, k)."""

    lists: Codes
    levels: NDArray[np.int64]  # 1 to 4, 0 for an empty slot
    rates: Values  # observed click rate; NaN where the log has none to offer
    sources: NDArray[np.int64]  # slots of a level with the same number rest on the same impressions
    impressions: NDArray[np.int64]  # how many those are

    @property
    def slots(self) -> int:
        """How many recommendations there are."""
        return int((self.levels > 0).sum())

    def shares(self) -> dict[str, float]:
        """The share of the slots on each level."""
        counts = np.bincount(self.levels.ravel(), minlength=5)[1:]
        return {name: float(n / max(1, self.slots)) for name, n in zip(LEVELS, counts, strict=True)}

    def expected_clicks(self) -> tuple[Estimate, Estimate]:
        """Clicks per recommended slot, with what is not known priced at 0 and at 1.

        Intervals cover the chance in the observed clicks, for these users: not other users, and not a wrong
        stand-in on level 2.
        """
        # One impression can vouch for its own pair and for similar users: errors may add up in full.
        error = self._standard_error(1) + self._standard_error(2)
        half = float(norm.ppf((1 + LEVEL) / 2)) * error
        how = f"{LEVEL:.0%} normal interval over the observed clicks"
        low, high = (float(self._worth(price)) for price in (0.0, 1.0))
        return (
            Estimate(low, max(0.0, low - half), low + half, self.slots, how),
            Estimate(high, high - half, min(1.0, high + half), self.slots, how),
        )

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

    def _worth(self, price: float) -> Any:  # a float
        """The mean over slots of the observed rate, or of the price where there is none."""
        real = self.levels > 0
        return np.where(np.isnan(self.rates), price, self.rates)[real].mean() if real.any() else 0.0

    def _standard_error(self, level: int) -> float:
        """Of one level's part: a weighted sum of clicks, many slots resting on the same impressions.

        sqrt(sum_j v_j^2 (c_j - p)^2), v_j the weight of an impression and p the weighted mean of clicks c.
        """
        known = ~np.isnan(self.rates) & (self.levels == level)
        if not known.any():
            return 0.0
        _, first, slots = np.unique(self.sources[known], return_index=True, return_counts=True)
        shown, rate = self.impressions[known][first], self.rates[known][first]
        weights = slots / (shown * self.slots)
        mean = (slots @ rate) / slots.sum()
        clicks = shown * rate
        return float(np.sqrt(weights**2 @ (clicks * (1 - mean) ** 2 + (shown - clicks) * mean**2)))


def find_evidence(lists: Codes, users: Codes, shown: Shown, cells: Codes) -> Evidence:
    """The evidence for lists (b, k) of these users (b,); `cells` (all users,) says who is like whom.

    Where only clicks are logged, a click is evidence for its own pair, and no rate of anything can be had.
    """
    lists = np.asarray(lists, dtype=np.int64)
    real = lists != UNKNOWN
    items = np.where(real, lists, 0)
    own = _Counts(np.asarray(shown.users, dtype=np.int64) * shown.n_items + shown.items, shown.clicked)
    near = _Counts(cells[shown.users].astype(np.int64) * shown.n_items + shown.items, shown.clicked)
    own_keys = np.asarray(users, dtype=np.int64)[:, None] * shown.n_items + items
    near_keys = cells[users].astype(np.int64)[:, None] * shown.n_items + items
    (own_shown, own_rate), (near_shown, near_rate) = own.at(own_keys), near.at(near_keys)
    counts = np.bincount(shown.items, minlength=shown.n_items)
    anywhere = (counts if shown.earlier is None else counts + shown.earlier)[items]
    levels = np.select([own_shown > 0, near_shown >= ENOUGH, anywhere >= ENOUGH], [1, 2, 3], 4)
    rates = np.select([levels == 1, (levels == 2) & shown.complete], [own_rate, near_rate], np.nan)
    return Evidence(
        lists,
        np.where(real, levels, 0),
        np.where(real, rates, np.nan),
        np.where(levels == 1, own_keys, near_keys),
        np.where(levels == 1, own_shown, near_shown),
    )


class _Counts:
    """How often each key was shown and clicked, to be asked about any keys."""

    def __init__(self, keys: NDArray[np.int64], clicked: NDArray[np.bool_]) -> None:
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(keys) else np.zeros(0, int)
        self._keys = ordered[starts]
        self._shown = np.diff(np.r_[starts, len(keys)])
        self._clicks = np.add.reduceat(clicked[order].astype(np.int64), starts) if len(keys) else self._shown

    def at(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], Values]:
        """How often these keys, any shape, were shown, and their click rates (0 where never shown)."""
        if len(self._keys) == 0:
            return np.zeros(keys.shape, dtype=np.int64), np.zeros(keys.shape)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found = self._keys[places] == keys
        shown = np.where(found, self._shown[places], 0)
        return shown, np.where(found, self._clicks[places], 0) / np.maximum(1, shown)
