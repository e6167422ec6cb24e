"""The pairs that a step of training looks at: sampled tuples, users with the whole catalogue, or windows."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Histories, Interactions
from towpath.device import device_of
from towpath.errors import DataError
from towpath.kernels.batch_shuffle import assign_batches
from towpath.models.scorer import Context, Scorer, context_of
from towpath.ranking.snapshot import LiveRanking
from towpath.rng import Rng
from towpath.training.batch import Batch as Batch  # what is made here
from towpath.training.batch import Batches as Batches
from towpath.training.event_weights import event_weights, refuse_weighted_showings
from towpath.training.impressions import ShownBatches
from towpath.training.negatives import Draw, TrainingNegatives
from towpath.training.settings import TrainingSettings
from towpath.training.windows import WindowBatches


def make_batches(
    train: Interactions,
    scorer: Scorer,
    settings: TrainingSettings,
    ranking: LiveRanking | None = None,
    history_length: int | None = None,
) -> Batches:
    """The batches that the settings ask for and the scorer can learn from.

    `history_length` says how much of a history is in a batch, where a model next to the scorer looks back
    further than it does. Windows of histories are always cut for the scorer.
    """
    if settings.pairs == "shown":
        refuse_weighted_showings(settings)
        return ShownBatches(train, scorer, settings.batch_size, history_length)
    if scorer.trains_on_sequences:
        return WindowBatches(train, scorer, settings, TrainingNegatives(train, scorer, settings, ranking))
    if settings.pairs == "catalogue":
        return CatalogueBatches(train, scorer, settings, history_length)
    return SampledBatches(train, scorer, settings, ranking, history_length)


class CatalogueBatches:
    """A few users at a time, each with the whole catalogue: every pair once an epoch, each counting the same.

    No sampling noise, and one matrix product scores more pairs in a second than look-ups do; but the work
    grows with users times items.
    """

    def __init__(
        self,
        train: Interactions,
        scorer: Scorer,
        settings: TrainingSettings,
        history_length: int | None = None,
    ) -> None:
        self.train = train
        self._scorer, self._history_length = scorer, history_length
        self._device = device_of(scorer)
        self._items = torch.arange(train.n_items, device=self._device)[None]
        # Users without positives teach nothing, users who have everything cannot be shown anything.
        lengths = train.histories.lengths
        self._users = np.flatnonzero((lengths > 0) & (lengths < train.n_items))
        self._weights = event_weights(train, settings)
        # As many users as have batch_size positives together, so that a step means the same as when sampled.
        positives = settings.batch_size_for(len(train))
        self._per_batch = max(1, round(positives * len(self._users) / max(1, len(train))))

    def __len__(self) -> int:
        return -(-len(self._users) // self._per_batch)

    def refresh(self) -> None:
        """Nothing to get ready: no pair is drawn."""

    def epoch(self, number: int, rng: Rng, *, name: str = "") -> Iterator[Batch]:
        """Every user once, with everything."""
        order = rng.numpy(name + "order", number).permutation(self._users)
        for start in range(0, len(order), self._per_batch):
            users = order[start : start + self._per_batch]
            labels = torch.zeros(len(users), self.train.n_items)
            rows, items = self.train.histories.pairs_of(users)
            labels[torch.from_numpy(rows), torch.from_numpy(items).long()] = 1
            context = context_of(self._scorer, users, self.train.histories, self._history_length)
            yield Batch(context, self._items, labels.to(self._device), self._weigh(users, labels))

    def _weigh(self, users: NDArray[np.int64], labels: Tensor) -> Tensor | None:
        """Each positive by its weight, every other item as one: (b, items)."""
        if self._weights is None:
            return None
        weights = torch.ones_like(labels)
        histories = self.train.histories
        rows, items = histories.pairs_of(users)
        _, own = Histories(histories.starts, self._weights).pairs_of(users)
        weights[torch.from_numpy(rows), torch.from_numpy(items).long()] = torch.from_numpy(own)
        return weights.to(self._device)


class SampledBatches:
    """Positives in random order, each (in column 0) with freshly drawn negatives of the same user."""

    def __init__(
        self,
        train: Interactions,
        scorer: Scorer,
        settings: TrainingSettings,
        ranking: LiveRanking | None = None,
        history_length: int | None = None,
    ) -> None:
        self.train = train
        self._history_length = scorer.history_length if history_length is None else history_length
        self._negatives = TrainingNegatives(train, scorer, settings, ranking)
        self._device = device_of(scorer)
        # The rows themselves are asked only for what came before them.
        self._rows: NDArray[np.int32] | None = None
        self._users, self._items, self._weights = train.users, train.items, event_weights(train, settings)
        if len(exhausted := self._negatives.exhausted):
            self._rows = np.flatnonzero(~np.isin(train.users, exhausted)).astype(np.int32)
            self._users, self._items = train.users[self._rows], train.items[self._rows]
            self._weights = None if self._weights is None else self._weights[self._rows]
        if len(self._users) == 0:
            raise DataError(
                f"Every one of the {train.n_users:,} users has interacted with all {train.n_items:,} items; "
                "there is nothing to learn a preference from."
            )
        if self._rows is None and self._history_length:
            self._rows = np.arange(len(train), dtype=np.int32)
        self._batch_size = min(settings.batch_size_for(len(train)), len(self._users))
        self._labels = torch.zeros(self._batch_size, 1 + settings.negatives, device=self._device)
        self._labels[:, 0] = 1  # the same for all batches

    def __len__(self) -> int:
        return -(-len(self._users) // self._batch_size)

    def refresh(self) -> None:
        """Compute the ranking anew if hard negatives are drawn from it."""
        self._negatives.refresh()

    def epoch(self, number: int, rng: Rng, *, name: str = "") -> Iterator[Batch]:
        """Every positive once; those of a batch are ordered by user, as the rows of a table lie."""
        assignment = assign_batches(len(self._users), self._batch_size, rng.numpy(name + "order", number))
        users, items = assignment.column(self._users), assignment.column(self._items)
        rows = None if self._rows is None or not self._history_length else assignment.column(self._rows)
        weights = None if self._weights is None else assignment.column(self._weights)
        del assignment
        draw = self._negatives.drawer(number, rng, name)
        for start in range(0, len(users), self._batch_size):
            some = slice(start, start + self._batch_size)
            past = self._past(None if rows is None else rows[some], len(users[some]))
            batch = self._batch(past, users[some].astype(np.int64), items[some], draw)
            yield batch if weights is None else replace(batch, weights=self._column(weights[some]))

    def _column(self, weights: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(weights)[:, None].to(self._device)

    def _past(self, rows: NDArray[np.int32] | None, count: int) -> NDArray[np.int64]:
        if rows is None:
            return np.empty((count, 0), dtype=np.int64)
        return self.train.histories.padded_before(rows, self._history_length)

    def _batch(
        self, past: NDArray[np.int64], users: NDArray[np.int64], positives: NDArray[np.int32], draw: Draw
    ) -> Batch:
        items = torch.from_numpy(draw(positives, users)).to(self._device)
        context = Context(torch.from_numpy(users).to(self._device), torch.from_numpy(past).to(self._device))
        return Batch(context, items, self._labels[: len(items)])
