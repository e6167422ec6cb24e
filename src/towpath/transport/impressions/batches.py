"""Batches of impressions for the library: what was shown, and items of the catalogue that all users share.

Draws that are shared make a block of users and items, whose inner products cost a tenth of those of single
pairs.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.data.negatives import PairSet
from towpath.kernels.heads import BlockTask, HeadTask
from towpath.rng import Rng
from towpath.training.impressions import impressions_of
from towpath.transport.impressions.held_out import HeldOut
from towpath.transport.impressions.members import CLICK, HEADS, LIKENESS, RELEVANCE

# Steps an epoch, and the sizes of a batch between which that holds.
_STEPS = 33
_SMALLEST, _LARGEST = 256, 8192


class Draws(NamedTuple):
    """How many items are drawn for a batch, and how much all of them count next to one impression."""

    items: int
    weight: float


class LibraryBatches:
    """Makes the batches of any epoch: every impression once, with fresh draws for each batch."""

    def __init__(self, train: Interactions, draws: Draws, batch_size: int = 0) -> None:
        log = self.impressions = impressions_of(train)
        self.elsewhere = np.ones(len(log), np.float32)  # 0: chosen by a model trained on this log
        self._users, self._items = log.users.astype(np.int64), log.items.astype(np.int64)
        self._clicks = np.asarray(log.labels).astype(np.float32)
        self._shown, self._clicked = PairSet(log), PairSet(train)
        self._draws = draws
        self._batch_size = batch_size or min(_LARGEST, max(_SMALLEST, len(log) // _STEPS))

    def epoch(self, number: int, rng: Rng, held_out: HeldOut | None) -> Iterator[tuple[HeadTask, BlockTask]]:
        """The batches of this epoch, without the impressions that are held out.

        Each head's weights add up to one over the impressions and the draws of a batch:

            e   impressions that were chosen elsewhere, against draws that were never shown
            r   every impression, clicked or not
            c   clicked impressions that were chosen elsewhere, against draws that were not clicked

        What a model trained on this log has chosen, it has found likely itself: e and c, which compare with
        the catalogue, would learn its choices, errors included, as evidence.
        """
        rows = np.arange(len(self._users)) if held_out is None else np.flatnonzero(~held_out.mask)
        order, draw = rng.numpy("impressions", number).permutation(rows), rng.numpy("catalogue", number)
        for start in range(0, len(order), self._batch_size):
            drawn = draw.choice(self.impressions.n_items, self._draws.items, replace=False)
            # By user, as the rows of a table lie.
            yield self._batch(np.sort(order[start : start + self._batch_size]), drawn, held_out)

    def _batch(
        self, rows: NDArray[np.int64], drawn: NDArray[np.int64], held_out: HeldOut | None
    ) -> tuple[HeadTask, BlockTask]:
        users, clicks, elsewhere = self._users[rows], self._clicks[rows], self.elsewhere[rows]
        first = np.flatnonzero(np.append(True, users[1:] != users[:-1]))
        counted = {LIKENESS: elsewhere, CLICK: clicks * elsewhere}  # (b,) how much each impression counts
        per_user = {head: np.add.reduceat(each, first) for head, each in counted.items()}
        block = np.zeros((len(drawn), HEADS, len(first)), np.float32)
        totals = np.full(HEADS, len(users), np.float32)
        for head, closed in self._closed(users[first], drawn, held_out).items():
            counts = np.where(
                closed, np.float32(0), per_user[head] * np.float32(self._draws.weight / len(drawn))
            )
            totals[head] = max(1, per_user[head].sum() + counts.sum())
            np.divide(counts, totals[head], out=block[:, head])
        targets, weights = np.ones((2, len(rows), 1, HEADS), np.float32)
        targets[:, 0, RELEVANCE] = clicks
        for head, each in counted.items():
            weights[:, 0, head] = each
        weights /= totals
        return (
            HeadTask(*map(torch.from_numpy, (users, self._items[rows][:, None], targets, weights))),
            BlockTask(*map(torch.from_numpy, (users[first], drawn, block))),
        )

    def _closed(
        self, users: NDArray[np.int64], drawn: NDArray[np.int64], held_out: HeldOut | None
    ) -> dict[int, NDArray[np.bool_]]:
        """Which drawn items are no negatives of each user, for each head that has some: (s, n)."""
        pairs, shape = (np.tile(users, len(drawn)), np.repeat(drawn, len(users))), (len(drawn), len(users))
        clicked = self._clicked.contains(*pairs)
        if held_out is not None:
            clicked |= held_out.pairs.contains(*pairs)
        return {LIKENESS: self._shown.contains(*pairs).reshape(shape), CLICK: clicked.reshape(shape)}
