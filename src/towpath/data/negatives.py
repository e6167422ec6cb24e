"""Items that a user has not taken, drawn at random."""

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Histories, Interactions
from towpath.errors import DataError

# Rounds of redrawing before the few users who own almost everything are served from an explicit list.
_ROUNDS = 30
# Bits of filter per known pair: about one false alarm in sixteen look-ups, each settled by an exact search.
_BITS_PER_PAIR = 16
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, 2^64 over the golden ratio: spreads keys over the filter


class PairSet:
    """A set of (user, item) pairs that answers many membership questions at once.

    A bit filter, small enough to stay in cache, settles most questions; what it flags is looked up in the
    sorted list of keys. Memory grows with the number of pairs, never with users times items.
    """

    def __init__(self, events: Interactions) -> None:
        self._n_items = events.n_items
        self._keys = np.unique(events.pair_keys())
        self._shift = np.uint64(64 - max(10, int(np.ceil(np.log2(_BITS_PER_PAIR * max(len(events), 1))))))
        self._filter = np.zeros(1 << (64 - int(self._shift) - 3), dtype=np.uint8)
        slots = self._slots(self._keys)
        np.bitwise_or.at(self._filter, slots >> np.uint64(3), _bit(slots))

    def contains(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each pair (users[i], items[i]) is in the set: (n,)."""
        keys = users * self._n_items + items
        slots = self._slots(keys)
        found = (self._filter[slots >> np.uint64(3)] & _bit(slots)) != 0
        maybe = np.flatnonzero(found)
        places = np.searchsorted(self._keys, keys[maybe])
        found[maybe] = self._keys[np.minimum(places, len(self._keys) - 1)] == keys[maybe]
        return found

    def items_per_user(self, n_users: int) -> NDArray[np.int64]:
        """How many different items each user has: (n_users,)."""
        return np.bincount(self._keys // self._n_items, minlength=n_users)

    def _slots(self, keys: NDArray[np.int64]) -> NDArray[np.uint64]:
        return (keys.view(np.uint64) * _SPREAD) >> self._shift


def _bit(slots: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (slots & np.uint64(7)).astype(np.uint8))


class NegativeSampler:
    """Draws items uniformly among those that a user has not taken in training.

    Validation and test items may be drawn: to leave them out would tell the model what they are.
    """

    def __init__(self, train: Interactions) -> None:
        if len(train) == 0:
            raise DataError(
                "There are no training interactions to draw negatives against; loosen the cleaning."
            )
        self.n_items = train.n_items
        self._taken = PairSet(train)
        self._histories: Histories = train.histories
        # A user who has taken everything has no negative, and nothing could be recommended to them either.
        self.exhausted = np.flatnonzero(self._taken.items_per_user(train.n_users) >= train.n_items)

    def sample(self, users: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """`count` untaken items for each of `users` (b,), drawn with replacement: (b, count)."""
        wanted = np.repeat(users, count)
        items = rng.integers(self.n_items, size=len(wanted), dtype=np.int32).astype(np.int64)
        open_places = np.flatnonzero(self._taken.contains(wanted, items))
        for _ in range(_ROUNDS):
            if len(open_places) == 0:
                return items.reshape(len(users), count)
            redrawn = rng.integers(self.n_items, size=len(open_places), dtype=np.int32).astype(np.int64)
            items[open_places] = redrawn
            open_places = open_places[self._taken.contains(wanted[open_places], redrawn)]
        for user in np.unique(wanted[open_places]):
            places = open_places[wanted[open_places] == user]
            items[places] = rng.choice(self._untaken(int(user)), size=len(places))
        return items.reshape(len(users), count)

    def _untaken(self, user: int) -> NDArray[np.int64]:
        starts = self._histories.starts
        taken = self._histories.items[starts[user] : starts[user + 1]]
        untaken = np.setdiff1d(np.arange(self.n_items), taken)
        if len(untaken) == 0:
            raise DataError(
                f"User code {user} has taken all {self.n_items:,} items, so no negative can be drawn; "
                "leave out such users (NegativeSampler.exhausted)."
            )
        return untaken
