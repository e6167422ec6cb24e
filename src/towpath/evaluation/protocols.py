"""Which candidates a target is ranked against: the protocol, without which no number means anything.

full      the whole catalogue without what the user has seen
sampled   100 items the user has no event with in any part, drawn without replacement
paper     100 draws with replacement from the whole range of raw ids, nothing excluded: the evaluation whose
          numbers match the paper's popularity row. Ids in the range that occur nowhere are phantom items,
          which score below everything. A draw that is the target itself counts as a further hit.
listed    only the items that the evaluated part has for the user, positives or not (evaluation/listed.py)
ips       the whole catalogue as in full, each target weighted by 1 / its propensity (evaluation/weighted.py)
snips     the same, divided by the sum of the weights
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
from towpath.evaluation.task import RankingTask
from towpath.ranking.blocks import NOTHING, Block, candidate_block, catalogue_blocks, rows_per_block
from towpath.rng import Rng

EvalProtocol = Literal["full", "sampled", "paper", "listed", "ips", "snips"]
PROTOCOLS: tuple[str, ...] = get_args(EvalProtocol)
NEGATIVES = 100

# Models look up an embedding for every candidate of a list: up to 256 floats, twice.
_BYTES_PER_CANDIDATE = 2048


@dataclass(frozen=True)
class Negatives:
    """What every evaluated user's targets are ranked against."""

    items: NDArray[np.int64]  # (n, NEGATIVES) item codes, NOTHING for a phantom or a copy of a target
    copies: NDArray[np.int64]  # (m,) how often each target was drawn among its user's negatives


@dataclass(frozen=True)
class TargetBlock:
    """A run of evaluated users with their candidates, and where their targets are among these."""

    candidates: Block
    rows: Tensor  # (m,) row of each target within the block
    columns: Tensor  # (m,) its column


def sample_negatives(protocol: EvalProtocol, task: RankingTask, seed: int) -> Negatives | None:
    """The negatives of every evaluated user, or None if the protocol ranks everything.

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


def blocks_of(task: RankingTask, negatives: Negatives | None) -> Iterator[TargetBlock]:
    """The evaluated users in runs, in order, each small enough to be scored at once."""
    start = 0
    for block in _catalogue(task) if negatives is None else _listed(task, negatives):
        end = start + len(block.users)
        mine = slice(task.starts[start], task.starts[end])
        rows = task.rows[mine] - start
        columns = task.targets[mine] if negatives is None else _columns(task, mine)
        yield TargetBlock(block, torch.from_numpy(rows), torch.from_numpy(columns))
        start = end


def _catalogue(task: RankingTask) -> Iterator[Block]:
    """Everyone with the whole catalogue but for what they have seen; a target's column is its code."""
    return catalogue_blocks(task.users, task.n_items, task.hidden)


def _listed(task: RankingTask, negatives: Negatives) -> Iterator[Block]:
    """Everyone with a list of their own: their targets, in order, before their negatives."""
    starts = task.starts
    widest = NEGATIVES + int(np.diff(starts).max())
    step = rows_per_block(widest, bytes_per_score=_BYTES_PER_CANDIDATE)
    for first in range(0, len(task.users), step):
        last = min(first + step, len(task.users))
        mine = slice(starts[first], starts[last])
        within = _columns(task, mine)
        listed = np.full((last - first, int(within.max()) + 1), NOTHING, dtype=np.int64)
        listed[task.rows[mine] - first, within] = task.targets[mine]
        yield candidate_block(task.users[first:last], np.hstack([listed, negatives.items[first:last]]))


def _columns(task: RankingTask, targets: slice) -> NDArray[np.int64]:
    """Which of its user's targets each of these is, from 0."""
    return np.arange(targets.start, targets.stop) - task.starts[task.rows[targets]]


def _sample_unseen(task: RankingTask, rng: np.random.Generator) -> NDArray[np.int64]:
    """NEGATIVES different items for each evaluated user that occur with them in no part: (n, NEGATIVES)."""
    interacted = _interacted_items(task)
    counts = np.bincount(interacted // task.n_items, minlength=len(task.users))
    unseen = task.n_items - counts
    _refuse_too_few(task, unseen)
    places = _distinct_below(unseen, rng)
    # The p-th unseen item of a user is p plus the number of seen items with at most p unseen ones below.
    starts = np.cumsum(counts) - counts
    rows = np.repeat(np.arange(len(counts)), counts)
    unseen_below = interacted % task.n_items - (np.arange(len(interacted)) - starts[rows])
    keys, base = rows * (task.n_items + 1) + unseen_below, np.arange(len(counts))[:, None]
    skipped = np.searchsorted(keys, base * (task.n_items + 1) + places, side="right") - starts[:, None]
    return places + skipped


def _interacted_items(task: RankingTask) -> NDArray[np.int64]:
    """Every pair of an evaluated user and their items, as row * n_items + item, ascending, distinct."""
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


def _refuse_too_few(task: RankingTask, unseen: NDArray[np.int64]) -> None:
    """Raises if a user has fewer unseen items than negatives are wanted."""
    short = np.flatnonzero(unseen < NEGATIVES)
    if len(short):
        user = task.split.train.user_ids.ids(task.users[short[:1]])[0]
        raise ConfigError(
            f"The sampled protocol needs {NEGATIVES} items that a user has no event with, but "
            f"{len(short):,} of {len(unseen):,} users have fewer (first: user {user!r} with "
            f"{unseen[short[0]]:,}); use the full protocol."
        )
