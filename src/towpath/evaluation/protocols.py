"""Which candidates a target is ranked against: the protocol, without which no number means anything.

full      the whole catalogue without what the user has seen
sampled   100 items the user has no event with in any part, drawn without replacement
paper     100 draws with replacement from the whole range of raw ids, nothing excluded: the evaluation whose
          numbers match the paper's popularity row. Ids in the range that occur nowhere are phantom items,
          which score below everything. A draw that is the target itself counts as a further hit.
truth     the lists of `full`, judged by the true relevance of every item in them (simulated worlds alone)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.vocabulary import Vocabulary
from towpath.errors import ConfigError
from towpath.evaluation.ranking import rows_per_block
from towpath.evaluation.scoring import taken_places
from towpath.evaluation.task import Task
from towpath.rng import Rng

Protocol = Literal["full", "sampled", "paper", "truth"]
PROTOCOLS: tuple[str, ...] = get_args(Protocol)
NEGATIVES = 100

NOTHING = -1  # in a list of candidates: no item here
# Models look up an embedding for every candidate of a list: up to 256 floats, twice.
_BYTES_PER_CANDIDATE = 2048


@dataclass(frozen=True)
class Negatives:
    """What every judged user's targets are ranked against."""

    items: NDArray[np.int64]  # (n, NEGATIVES) item codes, NOTHING for a phantom or a copy of a target
    copies: NDArray[np.int64]  # (m,) how often each target was drawn among its user's negatives


@dataclass(frozen=True)
class Block:
    """A run of judged users with their candidates: one call of the scorer."""

    users: NDArray[np.int64]  # (b,) codes
    items: Tensor  # (1, n) the same for everyone, or (b, c); a place that is hidden holds any item
    hidden: Tensor  # (h,) places row * width + column that are not ranked
    rows: Tensor  # (m,) row of each target within the block
    columns: Tensor  # (m,) its column


def sample_negatives(protocol: Protocol, task: Task, seed: int) -> Negatives | None:
    """The negatives of every judged user, or None if the protocol ranks everything.

    They depend on this seed, the users and the data alone, so every scorer meets the same ones.
    """
    rng = Rng(seed).numpy("evaluation", protocol)
    if protocol == "sampled":
        return Negatives(_sample_unseen(task, rng), np.zeros(len(task.targets), dtype=np.int64))
    if protocol == "paper":
        raw = raw_items(task.split.train.item_ids)
        drawn = raw[rng.integers(len(raw), size=(len(task.users), NEGATIVES))]
        is_copy = drawn[task.rows] == task.targets[:, None]
        # Copies leave the list and are counted instead, so that they do not tie with the target.
        targets, places = is_copy.nonzero()
        drawn[task.rows[targets], places] = NOTHING
        return Negatives(drawn, is_copy.sum(axis=1))
    return None


def raw_items(item_ids: Vocabulary) -> NDArray[np.int64]:
    """The item code of every raw id from the lowest to the highest, NOTHING for an id that does not occur.

    Ids that are not integers, or that leave more than every second number out, have no raw range: the codes
    themselves are then the range.
    """
    compact = np.arange(len(item_ids), dtype=np.int64)
    if not pa.types.is_integer(item_ids.values.type):
        return compact
    ids = item_ids.values.to_numpy(zero_copy_only=False)
    span = int(ids.max()) - int(ids.min()) + 1
    if span > 2 * len(ids):
        return compact
    codes = np.full(span, NOTHING, dtype=np.int64)
    # As 64-bit numbers: the difference of two 8-bit ids need not fit into 8 bits.
    codes[ids.astype(np.int64) - ids.min().astype(np.int64)] = compact
    return codes


def blocks_of(task: Task, negatives: Negatives | None) -> Iterator[Block]:
    """The judged users in runs, in order, each small enough to be scored at once."""
    if negatives is None:
        step = rows_per_block(task.n_items)
    else:
        widest = NEGATIVES + int(np.diff(task.starts).max())
        step = rows_per_block(widest, bytes_per_score=_BYTES_PER_CANDIDATE)
    starts = task.starts
    for first in range(0, len(task.users), step):
        last = min(first + step, len(task.users))
        mine = slice(starts[first], starts[last])
        rows = task.rows[mine] - first
        if negatives is None:
            yield _catalogue_block(task, task.users[first:last], rows, task.targets[mine])
        else:
            within = np.arange(mine.start, mine.stop) - starts[first:last][rows]
            listed = np.full((last - first, int(within.max()) + 1), NOTHING, dtype=np.int64)
            listed[rows, within] = task.targets[mine]
            items = np.hstack([listed, negatives.items[first:last]])
            yield _listed_block(task.users[first:last], items, rows, within)


def _catalogue_block(
    task: Task, users: NDArray[np.int64], rows: NDArray[np.int64], targets: NDArray[np.int64]
) -> Block:
    """A block that ranks the whole catalogue without the users' seen items."""
    everything, hidden = torch.arange(task.n_items)[None, :], taken_places(task.seen, users, task.n_items)
    return Block(users, everything, hidden, torch.from_numpy(rows), torch.from_numpy(targets))


def _listed_block(
    users: NDArray[np.int64], items: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> Block:
    """A block that ranks each user's own candidates (b, c)."""
    hidden = np.flatnonzero(items == NOTHING)
    candidates = torch.from_numpy(np.maximum(items, 0))
    return Block(users, candidates, *map(torch.from_numpy, (hidden, rows, columns)))


def _sample_unseen(task: Task, rng: np.random.Generator) -> NDArray[np.int64]:
    """NEGATIVES different items for each judged user that occur with them in no part: (n, NEGATIVES)."""
    taken = _taken_items(task)
    counts = np.bincount(taken // task.n_items, minlength=len(task.users))
    unseen = task.n_items - counts
    _refuse_too_few(task, unseen)
    places = _distinct_below(unseen, rng)
    # The p-th unseen item of a user is p plus the number of taken items with at most p unseen ones below.
    starts = np.cumsum(counts) - counts
    rows = np.repeat(np.arange(len(counts)), counts)
    unseen_below = taken % task.n_items - (np.arange(len(taken)) - starts[rows])
    keys, base = rows * (task.n_items + 1) + unseen_below, np.arange(len(counts))[:, None]
    skipped = np.searchsorted(keys, base * (task.n_items + 1) + places, side="right") - starts[:, None]
    return places + skipped


def _taken_items(task: Task) -> NDArray[np.int64]:
    """Every pair of a judged user and an item of theirs, as row * n_items + item, ascending and distinct."""
    parts = (task.split.train, task.split.validation, task.split.test)
    pairs = [part.histories.pairs_of(task.users) for part in parts]
    keys = np.sort(np.concatenate([rows * task.n_items + items for rows, items in pairs]))
    # np.unique would hash first, at eight times the cost for keys that are nearly all distinct.
    return keys[np.diff(keys, prepend=-1) > 0]


def _distinct_below(bounds: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """NEGATIVES different numbers in 0..bound-1 for each bound, every set equally likely: (n, NEGATIVES).

    Floyd's algorithm: one pass over the places of the list for all users at once, and no rejection, so a user
    with hardly any unseen item costs no more than another.
    """
    chosen = np.empty((NEGATIVES, len(bounds)), dtype=np.int64)
    for place in range(NEGATIVES):
        last = bounds - NEGATIVES + place
        drawn = rng.integers(0, last, endpoint=True)
        repeated = (chosen[:place] == drawn).any(axis=0)
        chosen[place] = np.where(repeated, last, drawn)
    return np.ascontiguousarray(chosen.T)


def _refuse_too_few(task: Task, unseen: NDArray[np.int64]) -> None:
    """Raises if a user has fewer unseen items than negatives are wanted."""
    short = np.flatnonzero(unseen < NEGATIVES)
    if len(short):
        user = task.split.train.user_ids.ids(task.users[short[:1]])[0]
        raise ConfigError(
            f"The sampled protocol needs {NEGATIVES} items that a user has no event with, but "
            f"{len(short):,} of {len(unseen):,} users have fewer (first: user {user!r} with "
            f"{unseen[short[0]]:,}); use the full protocol."
        )
