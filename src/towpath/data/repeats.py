"""What was shown lately: how long ago, how often, and how much less it is clicked when shown again."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.errors import DataError

FIRST = -1  # time since the last showing of a pair that was never shown before
HOUR, DAY, WEEK = 3_600, 86_400, 604_800
# A factor from few repeats is drawn towards one as if so many expected clicks had come as expected.
_PRIOR_CLICKS = 5.0
_PRIOR_SHOWINGS = 10.0


@dataclass(frozen=True)
class RestCurve:
    """How the chance of a click depends on the time since the same item was shown and not clicked.

    A time t belongs to span j if edges[j - 1] <= t < edges[j]; the last span has no end.
    """

    edges: NDArray[np.int64]  # (m,) ascending, in the unit of the times
    factors: NDArray[np.float64]  # (m + 1,) observed clicks over expected ones
    repeats: NDArray[np.int64]  # (m + 1,) how many repeats each factor comes from

    def at(self, since: NDArray[np.int64]) -> NDArray[np.float64]:
        """The factor after each time since the last showing, of any shape; 1 where there was none."""
        found = self.factors[np.searchsorted(self.edges, since, side="right")]
        return np.where(since == FIRST, 1.0, found)


def time_since_shown(impressions: Interactions) -> NDArray[np.int64]:
    """The time since the same item was last shown to the same user, FIRST where it never was: (n,)."""
    times = times_of(impressions)
    keys = impressions.pair_keys()
    order = np.lexsort((times, keys))
    again = np.append(False, np.diff(keys[order]) == 0)[: len(keys)]
    since = np.full(len(keys), FIRST, dtype=np.int64)
    since[order[again]] = np.diff(times[order], prepend=0)[again]
    return since


def estimate_rest(impressions: Interactions, edges: Sequence[int] = (HOUR, DAY, WEEK)) -> RestCurve:
    """The factor of every span, from what was shown again before it was ever clicked.

        factor_j = (clicks in span j + prior) / (expected clicks in span j + prior)
        expected = rate_u * rate_i / rate          rates of first showings, smoothed

    Where nothing was shown twice all factors are one. Times in other units than seconds need other edges.
    """
    if impressions.labels is None:
        raise DataError(
            f"How much less is clicked when it is shown again needs a log of impressions, but these "
            f"{len(impressions):,} rows are positives alone; name the column of labels with --label-col."
        )
    labels = impressions.labels.astype(np.float64)
    since = time_since_shown(impressions)
    first = since == FIRST
    again = ~first & ~_clicked_before(impressions)
    expected = _expected(impressions, labels, first)
    bounds = np.asarray(edges, dtype=np.int64)
    spans = np.searchsorted(bounds, since[again], side="right")
    size = len(bounds) + 1
    clicks = np.bincount(spans, labels[again], minlength=size)
    wanted = np.bincount(spans, expected[again], minlength=size)
    factors = (clicks + _PRIOR_CLICKS) / (wanted + _PRIOR_CLICKS)
    return RestCurve(bounds, factors, np.bincount(spans, minlength=size))


@dataclass(frozen=True)
class Showings:
    """What has been shown to whom: each pair once."""

    n_items: int
    keys: NDArray[np.int64]  # (pairs,) user * n_items + item, ascending
    counts: NDArray[np.int64]  # (pairs,) how often
    last: NDArray[np.int64]  # (pairs,) when last

    def of(self, users: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Counts and last times (b, n_items) for these users; 0 and 0 where a pair was never shown."""
        counts = np.zeros((len(users), self.n_items), dtype=np.int64)
        last = np.zeros_like(counts)
        starts = np.searchsorted(self.keys, users * self.n_items)
        ends = np.searchsorted(self.keys, (users + 1) * self.n_items)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            items = self.keys[start:end] % self.n_items
            counts[row, items], last[row, items] = self.counts[start:end], self.last[start:end]
        return counts, last


def showings_of(impressions: Interactions) -> Showings:
    """All showings of a log, pair by pair."""
    keys, places, counts = np.unique(impressions.pair_keys(), return_inverse=True, return_counts=True)
    last = np.full(len(keys), np.iinfo(np.int64).min)
    np.maximum.at(last, places, times_of(impressions))
    return Showings(impressions.n_items, keys, counts, last)


def times_of(impressions: Interactions) -> NDArray[np.int64]:
    """The time of every impression; an error where there are none."""
    if impressions.times is None:
        raise DataError(
            f"How long ago something was shown needs a time for all {len(impressions):,} impressions, but "
            "the data have no time column; name it with --time-col."
        )
    return impressions.times


def _clicked_before(impressions: Interactions) -> NDArray[np.bool_]:
    """Whether the pair of each impression had been clicked by then: (n,)."""
    keys, times = impressions.pair_keys(), times_of(impressions)
    pairs, places = np.unique(keys, return_inverse=True)
    first_click = np.full(len(pairs), np.iinfo(np.int64).max)
    clicked = np.asarray(impressions.labels)
    np.minimum.at(first_click, places[clicked], times[clicked])
    return first_click[places] < times


def _expected(
    impressions: Interactions, labels: NDArray[np.float64], first: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The chance of a click of each repeated impression if it were its first showing: (n,)."""
    rate = labels[first].mean() if first.any() else 0.0
    if not rate:
        return np.zeros(len(labels))

    def rates(codes: NDArray[np.int32], size: int) -> NDArray[np.float64]:
        clicks = np.bincount(codes[first], labels[first], minlength=size)
        shown = np.bincount(codes[first], minlength=size)
        # Without the pair's own first showing, which was not clicked, or it would not be evaluated here.
        others = np.maximum(shown - 1, 0)
        return (clicks + _PRIOR_SHOWINGS * rate) / (others + _PRIOR_SHOWINGS)

    by_user, by_item = (
        rates(impressions.users, impressions.n_users),
        rates(impressions.items, impressions.n_items),
    )
    return np.minimum(1.0, by_user[impressions.users] * by_item[impressions.items] / rate)
