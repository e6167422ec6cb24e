"""Positives in random order, each with freshly drawn negatives."""

from collections.abc import Callable, Iterator
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
from towpath.training.ranking import LiveRanking
from towpath.training.settings import TrainingSettings


@dataclass(frozen=True)
class Batch:
    """Scored tuples: one positive (column 0) and its negatives per row.

    context: of b users. items, labels: (b, 1 + negatives).
    """

    context: Context
    items: Tensor
    labels: Tensor


class BatchSource:
    """Makes the batches of any epoch, each epoch from generators of its own.

    Some of the negatives may come from the head of the scorer's own current ranking, that is, from what it is
    about to show; whoever trains keeps that ranking fresh.
    """

    def __init__(
        self,
        train: Interactions,
        scorer: Scorer,
        settings: TrainingSettings,
        ranking: LiveRanking | None = None,
    ) -> None:
        self.train = train
        self._ranking = ranking or LiveRanking(scorer, train, shown=1, depth=settings.head)
        self._scorer = scorer
        self._settings = settings
        self._sampler = NegativeSampler(train)
        self._device = next(scorer.parameters()).device
        rows = np.arange(len(train))
        exhausted = self._sampler.exhausted
        self._rows = rows[~np.isin(train.users, exhausted)] if len(exhausted) else rows
        if len(self._rows) == 0:
            raise DataError(
                f"Every one of the {train.n_users:,} users has taken all {train.n_items:,} items; "
                "there is nothing to learn a preference from."
            )

    def __len__(self) -> int:
        return -(-len(self._rows) // self._settings.batch_size)

    def epoch(self, number: int, rng: Rng, *, name: str = "") -> Iterator[Batch]:
        """The batches of this epoch: every positive once, in an order of its own.

        `name` sets apart several passes of one epoch, each with an order and negatives of its own.
        """
        order = rng.numpy(name + "order", number).permutation(self._rows)
        draw = self._drawer(number, rng, name)
        for start in range(0, len(order), self._settings.batch_size):
            yield self._batch(order[start : start + self._settings.batch_size], draw)

    def refresh(self) -> None:
        """Take the ranking anew if negatives are drawn from its head."""
        if self._settings.head_negatives:
            self._ranking.refresh()

    def _drawer(self, number: int, rng: Rng, name: str) -> Callable[[NDArray[np.int64]], NDArray[np.int64]]:
        """A function from users (b,) to their negatives (b, negatives) in this epoch."""
        settings, uniform = self._settings, rng.numpy(name + "negatives", number)
        if not settings.head_negatives:
            return lambda users: self._sampler.sample(users, settings.negatives, uniform)
        generator = rng.torch(name + "head", number)

        def mixed(users: NDArray[np.int64]) -> NDArray[np.int64]:
            anywhere = self._sampler.sample(users, settings.negatives - settings.head_negatives, uniform)
            head = self._ranking.current().draw(
                torch.from_numpy(users), settings.head_negatives, settings.head, generator
            )
            return np.column_stack([anywhere, head.numpy()])

        return mixed

    def _batch(
        self, rows: NDArray[np.int64], draw: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    ) -> Batch:
        users = self.train.users[rows].astype(np.int64)
        items = torch.from_numpy(np.column_stack([self.train.items[rows], draw(users)])).to(self._device)
        labels = torch.zeros(items.shape, device=self._device)
        labels[:, 0] = 1
        past = self.train.histories.padded_before(rows, self._scorer.history_length)
        context = Context(torch.from_numpy(users).to(self._device), torch.from_numpy(past).to(self._device))
        return Batch(context, items, labels)
