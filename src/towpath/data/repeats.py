"""What was shown lately: how long ago, how often, and how much less it is clicked when shown again."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.errors import DataError

FIRST = -1  # time since the last showing of a pair that was never shown before
HOUR, DAY, WEEK = 3_600, 86_400, 604_800  # seconds
SPANS = (HOUR, DAY, WEEK)
# A factor from few repeats is drawn towards one as if so many expected clicks had come as expected.
_PRIOR_CLICKS = 5.0
_PRIOR_SHOWINGS = 10.0


@dataclass(frozen=True)
class RestCurve:
    """How the chance of a click depends on the time since the same item was shown and not clicked.

    A time t belongs to span j if edges[j - 1] <= t < edges[j]; the last span has no end. Edges and times are
    in the unit of the log.
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


def estimate_rest(impressions: Interactions, spans: Sequence[int] = SPANS) -> RestCurve:
    """The factor of every span, from what was shown again before it was ever clicked; spans in seconds.

        factor_j = (clicks in span j + prior) / (expected clicks in span j + prior)
        expected = rate_u * rate_i / rate          rates of first showings, smoothed

    Where nothing was shown twice all factors are one. The same pair twice at the same moment is one showing
    that was written twice, and says nothing.
    """
    if impressions.labels is None:
        raise DataError(
            f"How much less is clicked when it is shown again needs a log of impressions, but these "
            f"{len(impressions):,} rows are positives alone; name the column of labels with --label-col."
        )
    labels = impressions.labels.astype(np.float64)
    since = time_since_shown(impressions)
    first = since == FIRST
    again = (since > 0) & ~_clicked_before(impressions)
    expected = _expected(impressions, labels, first)
    edges = np.asarray(spans, dtype=np.int64) * times_a_second(times_of(impressions))
    places = np.searchsorted(edges, since[again], side="right")
    size = len(edges) + 1
    clicks = np.bincount(places, labels[again], minlength=size)
    wanted = np.bincount(places, expected[again], minlength=size)
    factors = (clicks + _PRIOR_CLICKS) / (wanted + _PRIOR_CLICKS)
    return RestCurve(edges, factors, np.bincount(places, minlength=size))


def times_a_second(times: NDArray[np.int64]) -> int:
    """How much these times grow in a second, by how large they are.

    Since 1970 there were some 10^9 seconds, 10^12 milliseconds or 10^15 microseconds. What is smaller counts
    as seconds.

    >>> [times_a_second(np.array([7 * 10**digits])) for digits in (0, 8, 11, 14)]
    [1, 1, 1000, 1000000]
    """
    largest = int(times.max(initial=0))
    return 1_000_000 if largest >= 10**14 else 1_000 if largest >= 10**11 else 1


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
        for row, user in enumerate(users.tolist()):
            items, counts_of, last_of = self.of_user(user)
            counts[row, items], last[row, items] = counts_of, last_of
        return counts, last

    def of_user(self, user: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The items (m,) that this user was shown, ascending, how often, and when last."""
        start, end = np.searchsorted(self.keys, [user * self.n_items, (user + 1) * self.n_items])
        return self.keys[start:end] % self.n_items, self.counts[start:end], self.last[start:end]


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
