"""Items that a user has not interacted with, drawn at random."""

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Histories, Interactions
from towpath.errors import DataError
from towpath.kernels.pair_search import PairSearch
from towpath.mapped import chunks

# Rounds of drawing before the few users who own almost everything are served from an explicit list.
_ROUNDS = 31


class PairSet:
    """A set of (user, item) pairs that answers many membership questions at once."""

    def __init__(self, events: Interactions) -> None:
        # Sorted, not hashed as np.unique does: the keys come nearly in order, and this is ten times faster.
        keys = events.pair_keys()
        keys.sort()
        self._search = PairSearch(_without_repeats(keys), events.n_users, events.n_items)

    def contains(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each pair (users[i], items[i]) is in the set: (n,)."""
        return self._search.contains(users, items)

    def open_weights(
        self,
        users: NDArray[np.int64],
        items: NDArray[np.int64],
        each: NDArray[np.float32],
        out: NDArray[np.float32],
    ) -> float:
        """Fill out (s, n) with each (n,), and 0 where (users[n], items[r]) is in the set; the sum of all."""
        return self._search.open_weights(users, items, each, out)

    def draw_others(
        self, users: NDArray[np.int64], items: NDArray[np.int64], begin: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Fill items (b, k) from column `begin` on with some that are not the users'; places not yet so."""
        return self._search.draw_unknown(users, items, begin, rng, _ROUNDS)

    def items_per_user(self) -> NDArray[np.int64]:
        """How many different items each user has: (n_users,)."""
        return np.diff(self._search.pairs.starts)


def _without_repeats(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending keys from 0 on, each once: moved up where they lie, as they may fill a mapped file."""
    end, last = 0, -1
    for some in chunks(len(keys)):
        first_ones = keys[some][np.diff(keys[some], prepend=last) > 0]
        last = keys[some][-1]
        keys[end : end + len(first_ones)] = first_ones
        end += len(first_ones)
    return keys[:end]


class NegativeSampler:
    """Draws items uniformly among those that a user has not interacted with in training.

    Validation and test items may be drawn: to leave them out would tell the model what they are.
    """

    def __init__(self, train: Interactions) -> None:
        if len(train) == 0:
            raise DataError(
                "There are no training interactions to draw negatives against; loosen the cleaning."
            )
        self.n_items = train.n_items
        self._interacted = PairSet(train)
        self._histories: Histories = train.histories
        # A user who has interacted with everything has no negative, and cannot be recommended anything.
        self.exhausted = np.flatnonzero(self._interacted.items_per_user() >= train.n_items)

    def sample(self, users: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """`count` items without an interaction for each of `users` (b,), with replacement: (b, count)."""
        items = np.empty((len(users), count), dtype=np.int64)
        self.fill(users, items, 0, rng)
        return items

    def fill(
        self, users: NDArray[np.int64], items: NDArray[np.int64], begin: int, rng: np.random.Generator
    ) -> None:
        """Put such draws into items (b, k) from column `begin` on."""
        open_places = self._interacted.draw_others(users, items, begin, rng)
        if len(open_places) == 0:
            return
        owners = users[open_places // items.shape[1]]
        for user in np.unique(owners):
            places = open_places[owners == user]
            items.reshape(-1)[places] = rng.choice(self._not_interacted(int(user)), size=len(places))

    def _not_interacted(self, user: int) -> NDArray[np.int64]:
        starts = self._histories.starts
        interacted = self._histories.items[starts[user] : starts[user + 1]]
        not_interacted = np.setdiff1d(np.arange(self.n_items), interacted)
        if len(not_interacted) == 0:
            raise DataError(
                f"User code {user} has all {self.n_items:,} items, so no negative can be drawn; "
                "leave out such users (NegativeSampler.exhausted)."
            )
        return not_interacted
