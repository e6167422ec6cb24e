"""Which items a list may hold, from ids that the caller gives."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Histories
from towpath.data.vocabulary import UNKNOWN, Id, Vocabulary
from towpath.errors import ConfigError, DataError
from towpath.ranking.resting import NOTHING_RESTS, Resting


@dataclass(frozen=True)
class ListRules:
    """How long lists are, which items compete, and which are hidden from each user."""

    k: int
    candidates: NDArray[np.int64] | None = None  # distinct codes, ascending; None: the whole catalogue
    hide_seen: bool = True  # what the user has interacted with
    hide_shown: bool = False  # and what the user was shown
    resting: Resting = NOTHING_RESTS  # what was shown lately is discounted, or hidden
    now: int | None = None  # the moment for which lists are made, in the log's times; None: its end


def check_k(k: int, items: int) -> None:
    """Nothing, unless there is no list of k items."""
    if not 0 < k <= items:
        raise ConfigError(
            f"k must lie between 1 and the {items:,} items of the catalogue, and {k:,} was asked for."
        )


def known_codes(ids: Sequence[Id], item_ids: Vocabulary, what: str) -> NDArray[np.int64]:
    """The codes of those ids that are items of the catalogue, in their order; at least one must be."""
    codes = item_ids.codes(ids)
    known = codes[codes != UNKNOWN]
    if not len(known):
        first = f" (first: {ids[0]!r})" if len(ids) else ""
        raise DataError(
            f"None of the {len(ids):,} items of the {what} is among the {len(item_ids):,} items of the "
            f"model{first}; give ids of its items, such as {item_ids.ids(np.array([0]))[0]!r}."
        )
    return known


def candidate_codes(
    item_ids: Vocabulary, candidates: Sequence[Id] | None, exclude: Sequence[Id]
) -> NDArray[np.int64] | None:
    """The codes that compete: the known candidates, or the catalogue (None), without what is excluded."""
    if candidates is None and not len(exclude):
        return None
    everything = np.arange(len(item_ids))
    allowed = everything if candidates is None else known_codes(candidates, item_ids, "candidates")
    left: NDArray[np.int64] = np.setdiff1d(allowed, item_ids.codes(exclude))
    if not len(left):
        raise DataError(
            f"All {len(np.unique(allowed)):,} items that could be recommended are excluded; exclude fewer."
        )
    return left


def pack(histories: Sequence[NDArray[np.integer]]) -> Histories:
    """One history after the other, oldest first."""
    starts = np.cumsum([0, *(len(history) for history in histories)]).astype(np.int64)
    items = np.concatenate([np.empty(0, np.int64), *histories])
    return Histories(starts, items.astype(np.int32))
