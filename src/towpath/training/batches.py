"""Positives in random order, each with freshly drawn negatives."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.data.negatives import NegativeSampler
from towpath.errors import DataError
from towpath.models.scorer import Context, Scorer
from towpath.rng import Rng


@dataclass(frozen=True)
class Batch:
    """Scored tuples: one positive (column 0) and its negatives per row.

    context: of b users. items, labels: (b, 1 + negatives).
    """

    context: Context
    items: Tensor
    labels: Tensor


class BatchSource:
    """Makes the batches of any epoch, each epoch from generators of its own."""

    def __init__(self, train: Interactions, scorer: Scorer, batch_size: int, negatives: int) -> None:
        self.train = train
        self.batch_size = batch_size
        self.negatives = negatives
        self.sampler = NegativeSampler(train)
        self._history_length = scorer.history_length
        self._device = next(scorer.parameters()).device
        rows = np.arange(len(train))
        self._rows = (
            rows[~np.isin(train.users, self.sampler.exhausted)] if len(self.sampler.exhausted) else rows
        )
        if len(self._rows) == 0:
            raise DataError(
                f"Every one of the {train.n_users:,} users has taken all {train.n_items:,} items; "
                "there is nothing to learn a preference from."
            )

    def __len__(self) -> int:
        return -(-len(self._rows) // self.batch_size)

    def epoch(self, number: int, rng: Rng) -> Iterator[Batch]:
        """The batches of this epoch: every positive once, in an order of its own."""
        order = rng.numpy("order", number).permutation(self._rows)
        negatives = rng.numpy("negatives", number)
        for start in range(0, len(order), self.batch_size):
            yield self._batch(order[start : start + self.batch_size], negatives)

    def _batch(self, rows: NDArray[np.int64], rng: np.random.Generator) -> Batch:
        users = self.train.users[rows].astype(np.int64)
        drawn = self.sampler.sample(users, self.negatives, rng)
        items = torch.from_numpy(np.column_stack([self.train.items[rows], drawn])).to(self._device)
        labels = torch.zeros(items.shape, device=self._device)
        labels[:, 0] = 1
        past = self.train.histories.padded_before(rows, self._history_length)
        context = Context(torch.from_numpy(users).to(self._device), torch.from_numpy(past).to(self._device))
        return Batch(context, items, labels)
