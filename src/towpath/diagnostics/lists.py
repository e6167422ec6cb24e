"""Lists that a model would show: how they spread over the catalogue, and what two of them share."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.ranking.blocks import NOTHING

# An item with fewer training events than this has hardly been tried.
THIN = 5
# Items by popularity: where each band ends, as a share of the catalogue, most popular first.
BANDS = {"top 1 %": 0.01, "1 to 5 %": 0.05, "5 to 20 %": 0.2, "20 to 50 %": 0.5, "the other half": 1.0}


@dataclass(frozen=True)
class Spread:
    """How slots of lists (or events) are spread over the items of a catalogue."""

    places: int
    popularity: float  # mean over slots of the share of users with training events who took the item
    coverage: float  # share of the catalogue that is in a list at all
    half: int  # the fewest items that hold half of all slots
    thin: float  # share of slots whose item has fewer than THIN training events
    bands: tuple[float, ...]  # share of the slots in each of BANDS


def shared(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    """The share of each list that the other list of the same user holds too: (n,) of (n, k) twice.

    >>> shared(np.array([[1, 2, 3, 4]]), np.array([[4, 5, 1, 6]]))
    array([0.5])
    """
    real = np.count_nonzero(one != NOTHING, axis=1)
    return np.asarray(in_both(one, other).sum(axis=1) / np.maximum(1, real))


def in_both(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the other list of the same user holds the item of each slot too: (n, k) of (n, k) twice."""
    return np.asarray((one[:, :, None] == other[:, None, :]).any(axis=2) & (one != NOTHING))


def spread_of(items: NDArray[np.integer], train: Interactions) -> Spread:
    """How these slots, any shape, are spread; empty ones (NOTHING) do not count."""
    placed = np.bincount(items[items != NOTHING].ravel(), minlength=train.n_items)
    total, counts = max(1, int(placed.sum())), train.item_counts
    takers = max(1, int(np.count_nonzero(train.histories.lengths)))
    largest = np.sort(placed)[::-1].cumsum()
    by_popularity = placed[np.argsort(-counts, kind="stable")].cumsum()
    ends = [max(1, round(end * train.n_items)) for end in BANDS.values()]
    return Spread(
        places=int(placed.sum()),
        popularity=float(placed @ counts / (total * takers)),
        coverage=float(np.count_nonzero(placed) / train.n_items),
        half=int(np.searchsorted(largest, total / 2)) + 1,
        thin=float(placed[counts < THIN].sum() / total),
        bands=tuple(float(part) for part in np.diff(by_popularity[np.array(ends) - 1], prepend=0) / total),
    )
