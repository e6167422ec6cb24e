"""Events as arrays: cleaning and ordering of a table that fits into memory.

The same steps as the statements of `sql`, with the same result, several times faster: a table is sorted by
numbers that hold both the key and the place of a row, which numpy sorts with vector instructions.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from towpath.data.sql import Side
from towpath.mapped import count_codes

Array = NDArray[Any]  # columns have types of their own
# Bytes of each event that sorting takes on top of its columns: up to four numbers of 64 bits.
SORT_BYTES = 32
# Places are written into a key so many at a time: all of them would be as large as the key.
PLACES_AT_ONCE = 1 << 20
# Whether the value of an event is as high as was asked for; only that step looks at it.
RATED = "rated"


class EventArrays:
    """Columns in the order (user, time, row of the file), each under its name in SQL."""

    def __init__(self, columns: dict[str, Array], users: int, items: int) -> None:
        """The columns in the order of the file, with codes below these numbers; they are taken over."""
        self.columns, self.sizes = columns, {"user": users, "item": items}
        keys = [columns["event_time"]] if "event_time" in columns else []
        order = stable_order(*keys, columns["user_code"])
        for name in columns:
            columns[name] = columns[name][order]

    def rows(self) -> int:
        """How many events there are."""
        return len(self.columns["user_code"])

    def counts(self) -> tuple[int, int, int]:
        """Events, users and items."""
        return self.rows(), len(self.kept_codes("user")), len(self.kept_codes("item"))

    def kept_codes(self, side: Side) -> NDArray[np.int64]:
        """The codes of those users or items that have events, ascending."""
        return np.flatnonzero(count_codes(self.columns[f"{side}_code"], self.sizes[side]))

    def close_up(self, side: Side) -> NDArray[np.int64]:
        """The codes that are left; from now on their places among these are the codes."""
        kept = self.kept_codes(side)
        if len(kept) < self.sizes[side]:
            places = np.zeros(self.sizes[side], dtype=np.int32)
            places[kept] = np.arange(len(kept), dtype=np.int32)
            self.columns[f"{side}_code"] = places[self.columns[f"{side}_code"]]
            self.sizes[side] = len(kept)
        return kept

    def keep_rated(self, least: float) -> None:
        """The events whose value is at least this; which they are was asked when they were read."""
        self._keep(self.columns.pop(RATED))

    def keep_shown(self) -> None:
        """The events that were shown, as far as the log says."""
        self._keep(self.columns["exposure"] | self.columns["label"])

    def keep_one_of_repeats(self, which: Literal["first", "last"]) -> None:
        """One event of each pair of user and item; a click is never lost to a showing."""
        self._keep(self._one_of_repeats(which))  # what it sorted is gone by then

    def _one_of_repeats(self, which: Literal["first", "last"]) -> NDArray[np.bool_]:
        users, items = self.columns["user_code"], self.columns["item_code"]
        pairs = users.astype(np.int64)
        pairs *= self.sizes["item"]
        pairs += items
        step = 1 if which == "first" else -1
        keys = [~self.columns["label"][::step]] if "label" in self.columns else []
        order = stable_order(*keys, pairs[::step])
        in_order = pairs[::step][order]
        repeated = order[1:][in_order[1:] == in_order[:-1]]
        keep = np.ones(len(pairs), dtype=np.bool_)
        keep[::step][repeated] = False
        return keep

    def keep_counted(self, side: Side, least: int, most: int | None) -> None:
        """The events of those users or items that have at least `least` and at most `most` of them."""
        codes, label = self.columns[f"{side}_code"], self.columns.get("label")
        counts = count_codes(codes if label is None else codes[label], self.sizes[side])
        enough = counts >= least
        if most is not None:
            enough &= counts <= most
        if not enough[counts > 0].all() or label is not None:
            self._keep(enough[codes])

    def _keep(self, keep: NDArray[np.bool_]) -> None:
        if not keep.all():
            for name in self.columns:  # one by one, so that only one is there twice
                self.columns[name] = self.columns[name][keep]


def stable_order(*keys: Array) -> NDArray[np.int64]:
    """The places (n,) of rows in the order of their keys, the last key first; equal rows stay as they are.

    Keys are (n,) whole numbers. Sorted is (piece of the key, place) in one number of 64 bits, from the lowest
    piece to the highest: one pass where a key and a place fit, which takes a tenth of numpy's `argsort`.
    """
    rows = len(keys[0])
    order: NDArray[np.int64] | None = None
    place_bits = max(1, rows.bit_length())
    for key in keys if rows else ():
        lowest = int(key.min())
        bits = (int(key.max()) - lowest).bit_length()
        for start in range(0, bits, 64 - place_bits):
            packed = (key if order is None else key[order]).astype(np.uint64)
            packed -= np.uint64(lowest % 2**64)
            packed >>= np.uint64(start)
            packed <<= np.uint64(place_bits)  # what is cut off above is sorted by the next pass
            for first in range(0, rows, PLACES_AT_ONCE):
                last = min(first + PLACES_AT_ONCE, rows)
                packed[first:last] |= np.arange(first, last, dtype=np.uint64)
            packed.sort()
            packed &= np.uint64((1 << place_bits) - 1)
            places = packed.view(np.int64)
            order = places if order is None else order[places]
    return np.arange(rows) if order is None else order
