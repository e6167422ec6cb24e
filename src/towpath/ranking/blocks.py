"""Users in blocks, each with its candidates and with what is hidden: so many that memory stays bounded."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Histories
from towpath.data.vocabulary import UNKNOWN
from towpath.memory import share_of_room

NOTHING = -1  # in a list of items: no item here

# What is hidden from a user: the items of the histories that they are scored after ("interacted"), those of
# other histories (such as of everything they were shown), or nothing.
Hide = Histories | Literal["interacted", "nothing"]

# Scores that fit into a core's cache: comparing them is several times faster than fetching them again.
_CACHED_SCORES = 2**20
# Fewer rows than this waste the matrix product, however many items there are.
_FEWEST_ROWS = 16


@dataclass(frozen=True)
class Block:
    """A run of users with their candidates: one call of the scorer."""

    users: NDArray[np.int64]  # (b,) codes; UNKNOWN for a user without any
    items: Tensor  # (1, n) the same for everyone, or (b, c); a place that is hidden holds any item
    hidden: Tensor  # (h,) places row * width + column that are not ranked


def rows_per_block(width: int, *, budget: int = 2**28, bytes_per_score: int = 16) -> int:
    """How many users to score at once against `width` candidates, at least one.

    Under a limit of memory the budget is at most half of what is left. The working set stays under `budget`
    bytes if a score needs at most `bytes_per_score` on its way (itself, a copy to hide candidates in, a
    comparison, one more in the model).
    """
    row = bytes_per_score * max(width, 1)
    budget = share_of_room(budget, row, f"Scoring {width:,} items for one user")
    in_cache = max(_FEWEST_ROWS, _CACHED_SCORES // max(width, 1))
    return max(1, min(in_cache, budget // row))


def catalogue_blocks(users: NDArray[np.int64], n_items: int, hidden: Histories | None) -> Iterator[Block]:
    """The users (n,) in runs, in order, each with the whole catalogue but for what `hidden` has of them."""
    everything, step = torch.arange(n_items)[None, :], rows_per_block(n_items)
    for start in range(0, len(users), step):
        some = users[start : start + step]
        places = torch.empty(0, dtype=torch.int64) if hidden is None else places_of(hidden, some, n_items)
        yield Block(some, everything, places)


def shared_candidate_blocks(
    users: NDArray[np.int64], candidates: NDArray[np.int64], n_items: int, hidden: Histories | None
) -> Iterator[Block]:
    """The users (n,) in runs, in order, each with the same candidates (c,) but for what `hidden` has of them.

    The candidates are distinct codes below `n_items`.
    """
    shared, step = torch.from_numpy(candidates)[None, :], rows_per_block(len(candidates))
    columns = np.full(n_items, NOTHING, dtype=np.int64)
    columns[candidates] = np.arange(len(candidates))
    for start in range(0, len(users), step):
        some = users[start : start + step]
        yield Block(some, shared, _columns_of(hidden, some, columns, len(candidates)))


def candidate_block(users: NDArray[np.int64], items: NDArray[np.int64]) -> Block:
    """One block of users (b,) with candidates of their own (b, c), NOTHING where there are fewer."""
    hidden = np.flatnonzero(items == NOTHING)
    return Block(users, torch.from_numpy(np.maximum(items, 0)), torch.from_numpy(hidden))


def places_of(histories: Histories, users: NDArray[np.int64], n_items: int) -> Tensor:
    """Where each user's own items lie in a block of scores (b, n_items), as row * n_items + item: (m,).

    A user who is UNKNOWN has none.
    """
    known = np.flatnonzero(users != UNKNOWN)
    rows, items = histories.pairs_of(users[known])
    return torch.from_numpy(known[rows] * n_items + items)


def _columns_of(
    hidden: Histories | None, users: NDArray[np.int64], columns: NDArray[np.int64], width: int
) -> Tensor:
    """The places row * width + column of what is hidden, where `columns` (n_items,) has a column for it."""
    if hidden is None:
        return torch.empty(0, dtype=torch.int64)
    n_items = len(columns)
    rows, items = np.divmod(places_of(hidden, users, n_items).numpy(), n_items)
    there = columns[items] != NOTHING
    return torch.from_numpy(rows[there] * width + columns[items[there]])
