"""Two tables of events as one."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import COLUMNS, Interactions
from towpath.mapped import empty_array


def join(first: Interactions, second: Interactions) -> Interactions:
    """The events of both in the order (user, time, first before second), with every column that both have."""
    second = _in_order(second)
    columns: dict[str, Any] = {}  # arrays of several types, or None
    inserted = np.zeros(len(first) + len(second), dtype=np.bool_)
    inserted[_places_in(first, second) + np.arange(len(second))] = True
    for name in COLUMNS:
        own, more = getattr(first, name), getattr(second, name)
        columns[name] = None
        if own is not None and more is not None:
            columns[name] = empty_array(inserted.shape, own.dtype)
            columns[name][inserted], columns[name][~inserted] = more, own
    if first.impressions is not None and second.impressions is not None:
        columns["impressions"] = join(first.impressions, second.impressions)
    return replace(first, **columns)


def _in_order(rows: Interactions) -> Interactions:
    """The same rows by user and time; themselves where they lie so already, as tables that were read do."""
    times = np.zeros(len(rows), dtype=np.int64) if rows.times is None else rows.times
    steps = np.diff(rows.users.astype(np.int64))
    if ((steps > 0) | ((steps == 0) & (times[1:] >= times[:-1]))).all():
        return rows
    order = np.lexsort((times, rows.users))
    present = {name: getattr(rows, name) for name in COLUMNS}
    return replace(rows, **{name: each[order] for name, each in present.items() if each is not None})


def _places_in(first: Interactions, second: Interactions) -> NDArray[np.int64]:
    """How many rows of the first come before each of the second, both being in order: (n,).

    Neither is sorted again: a binary search among the rows of the user finds it, for all rows at once.
    """
    starts = first.histories.starts
    low, high = starts[second.users], starts[second.users + 1]
    if first.times is None or second.times is None:
        return high
    while (searched := low < high).any():
        middle = (low + high) // 2
        later = first.times[np.where(searched, middle, 0)] > second.times
        high = np.where(searched & later, middle, high)
        low = np.where(searched & ~later, middle + 1, low)
    return low
