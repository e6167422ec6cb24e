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
from towpath.kernels.impression_rows import ImpressionColumns, impression_rows
from towpath.rng import Rng
from towpath.training.impressions import impressions_of
from towpath.transport.impressions.held_out import HeldOut
from towpath.transport.impressions.members import CLICK, HEADS, LIKENESS

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
        self._shown, self._clicked = PairSet(log), PairSet(log.where(self._clicks > 0))
        self._clicked_or_held: PairSet | None = None  # made when it is asked for
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
        # Before the first batch it may be said which impressions were chosen elsewhere.
        log = ImpressionColumns(self._users, self._items, self._clicks, self.elsewhere)
        found = impression_rows(log, rows)
        block = np.zeros((len(drawn), HEADS, len(found.once)), np.float32)
        totals = np.full((HEADS, 1), len(rows), np.float32)
        for head in (LIKENESS, CLICK):
            counted = found.per_user[head].sum()
            share = found.per_user[head] * np.float32(self._draws.weight / len(drawn))
            closed = self._closed(head, held_out)
            totals[head] = max(1, counted + closed.open_weights(found.once, drawn, share, block[:, head]))
        block /= totals
        weights = found.counts
        weights /= totals[:, 0]
        return (
            HeadTask(*map(torch.from_numpy, (found.users, found.items, found.targets, weights))),
            BlockTask(*map(torch.from_numpy, (found.once, drawn, block))),
        )

    def _closed(self, head: int, held_out: HeldOut | None) -> PairSet:
        """The pairs that are no negatives of this head."""
        if head == LIKENESS:
            return self._shown
        if held_out is None:
            return self._clicked
        if self._clicked_or_held is None:
            self._clicked_or_held = PairSet(self.impressions.where((self._clicks > 0) | held_out.mask))
        return self._clicked_or_held
