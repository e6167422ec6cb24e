"""Which of many (user, item) pairs are known: a bit filter, then a search among the pairs of that user.

Compiled by numba where it is installed; without it numpy asks the same questions, several times slower.
"""

import numpy as np
from numpy.typing import NDArray

from towpath.kernels.available import AVAILABLE

# Bits of filter per known pair: about one false alarm in sixteen look-ups, each settled by an exact search.
_BITS_PER_PAIR = 16
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, 2^64 over the golden ratio: spreads keys over the filter


class PairSearch:
    """Sorted keys, user * n_items + item, with a filter small enough to stay in cache.

    Memory grows with the number of pairs and of users, never with users times items.
    """

    def __init__(self, keys: NDArray[np.int64], n_users: int, n_items: int) -> None:
        self.keys = keys
        self._n_items = n_items
        self._starts = np.searchsorted(keys, np.arange(n_users + 1, dtype=np.int64) * n_items)
        self._shift = np.uint64(64 - max(10, int(np.ceil(np.log2(_BITS_PER_PAIR * max(len(keys), 1))))))
        self._filter = np.zeros(1 << (64 - int(self._shift) - 3), dtype=np.uint8)
        slots = self._slots(keys)
        np.bitwise_or.at(self._filter, slots >> np.uint64(3), _bit(slots))

    def contains(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each pair (users[i], items[i]) is known: (n,)."""
        if not AVAILABLE:
            return self.contains_plainly(users, items)
        from towpath.kernels import compiled

        found = np.empty(len(users), dtype=np.bool_)
        compiled.known_pairs(
            self.keys, self._starts, self._filter, self._shift, _SPREAD, self._n_items, users, items, found
        )
        return found

    def contains_plainly(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The same by numpy."""
        keys = users * self._n_items + items
        slots = self._slots(keys)
        found = (self._filter[slots >> np.uint64(3)] & _bit(slots)) != 0
        maybe = np.flatnonzero(found)
        places = np.searchsorted(self.keys, keys[maybe])
        found[maybe] = self.keys[np.minimum(places, len(self.keys) - 1)] == keys[maybe]
        return found

    def _slots(self, keys: NDArray[np.int64]) -> NDArray[np.uint64]:
        return (keys.view(np.uint64) * _SPREAD) >> self._shift


def _bit(slots: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (slots & np.uint64(7)).astype(np.uint8))
