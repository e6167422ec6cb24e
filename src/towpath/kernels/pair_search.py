"""Which of many (user, item) pairs are known, and draws of items that are not.

Compiled by numba where it is installed; without it numpy does the same, several times slower.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from towpath.kernels.available import AVAILABLE

# Bits of filter per known pair: about one false alarm in sixteen look-ups, each settled by an exact search.
_BITS_PER_PAIR = 16
# Where a bit for every pair of the catalogue is no more than this per known pair, no search is needed at all.
_EXACT_BITS_PER_PAIR = 128
# Bits are set for so many pairs at a time: what that needs on the way stays small.
_SET_AT_ONCE = 1 << 18
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, 2^64 over the golden ratio: spreads keys over the filter


class KnownPairs(NamedTuple):
    """Sorted keys, user * n_items + item, with a filter of bits small enough to stay in cache."""

    keys: NDArray[np.int64]
    starts: NDArray[np.int64]  # (users + 1,) where each user's keys begin
    bits: NDArray[np.uint8]
    exact: bool  # whether the filter has a bit of its own for every pair there could be
    shift: np.uint64
    spread: np.uint64
    n_items: int


class PairSearch:
    """A set of pairs that answers many questions at once.

    Memory grows with the number of pairs and of users, never with users times items.
    """

    def __init__(self, keys: NDArray[np.int64], n_users: int, n_items: int) -> None:
        starts = np.searchsorted(keys, np.arange(n_users + 1, dtype=np.int64) * n_items)
        exact = n_users * n_items <= _EXACT_BITS_PER_PAIR * len(keys)
        bits = max(10, int(np.ceil(np.log2(_BITS_PER_PAIR * max(len(keys), 1)))))
        places = (n_users * n_items + 7) // 8 if exact else 1 << (bits - 3)
        shift = np.uint64(64 - bits)
        self.pairs = KnownPairs(
            keys, starts, np.zeros(places, dtype=np.uint8), exact, shift, _SPREAD, n_items
        )
        for start in range(0, len(keys), _SET_AT_ONCE):
            slots = self._slots(keys[start : start + _SET_AT_ONCE])
            np.bitwise_or.at(self.pairs.bits, slots >> np.uint64(3), _bit(slots))

    def contains(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each pair (users[i], items[i]) is known: (n,)."""
        if not AVAILABLE:
            return self.contains_plainly(users, items)
        from towpath.kernels import compiled

        found = np.empty(len(users), dtype=np.uint8)
        compiled.known_pairs(self.pairs, users, items, found)
        return found.view(np.bool_)

    def contains_plainly(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The same by numpy."""
        keys = users * self.pairs.n_items + items
        slots = self._slots(keys)
        found = (self.pairs.bits[slots >> np.uint64(3)] & _bit(slots)) != 0
        if not self.pairs.exact:
            maybe = np.flatnonzero(found)
            places = np.minimum(np.searchsorted(self.pairs.keys, keys[maybe]), len(self.pairs.keys) - 1)
            found[maybe] = self.pairs.keys[places] == keys[maybe]
        return found

    def open_weights(
        self,
        users: NDArray[np.int64],
        items: NDArray[np.int64],
        each: NDArray[np.float32],
        out: NDArray[np.float32],
    ) -> float:
        """Fill out (s, n) with each (n,), and 0 where (users[n], items[r]) is known; the sum of all."""
        if not AVAILABLE:
            return self.open_weights_plainly(users, items, each, out)
        from towpath.kernels import compiled

        return compiled.open_weights(self.pairs, users, items, each, out)

    def open_weights_plainly(
        self,
        users: NDArray[np.int64],
        items: NDArray[np.int64],
        each: NDArray[np.float32],
        out: NDArray[np.float32],
    ) -> float:
        """The same by numpy."""
        known = self.contains_plainly(np.tile(users, len(items)), np.repeat(items, len(users)))
        out[:] = np.where(known.reshape(out.shape), np.float32(0), each)
        return float(out.sum(dtype=np.float64))

    def draw_unknown(
        self,
        users: NDArray[np.int64],
        items: NDArray[np.int64],
        begin: int,
        rng: np.random.Generator,
        rounds: int,
    ) -> NDArray[np.int64]:
        """Fill items (b, k), from column `begin` on, with items that form no known pair with `users` (b,).

        Known ones are redrawn, so many rounds in all; what is known even then is named by its place in the
        flattened items.
        """
        if not AVAILABLE:
            return self.draw_unknown_plainly(users, items, begin, rng, rounds)
        from towpath.kernels import compiled

        return compiled.draw_unknown(self.pairs, users, rng, rounds, begin, items)

    def draw_unknown_plainly(
        self,
        users: NDArray[np.int64],
        items: NDArray[np.int64],
        begin: int,
        rng: np.random.Generator,
        rounds: int,
    ) -> NDArray[np.int64]:
        """The same, with the same draws, by numpy."""
        width = items.shape[1]
        places = np.arange(items.size).reshape(items.shape)[:, begin:].ravel()
        for _ in range(rounds):
            if len(places) == 0:
                break
            drawn = rng.integers(self.pairs.n_items, size=len(places), dtype=np.int32).astype(np.int64)
            items.reshape(-1)[places] = drawn
            places = places[self.contains_plainly(users[places // width], drawn)]
        return places

    def _slots(self, keys: NDArray[np.int64]) -> NDArray[np.uint64]:
        slots = keys.view(np.uint64)
        return slots if self.pairs.exact else (slots * _SPREAD) >> self.pairs.shift


def _bit(slots: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (slots & np.uint64(7)).astype(np.uint8))
