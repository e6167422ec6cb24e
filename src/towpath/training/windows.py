"""Batches for models of sequences: stretches of histories in which every step is an instance."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import PADDING, Histories, Interactions
from towpath.device import device_of
from towpath.errors import ConfigError, DataError
from towpath.models.scorer import Context, Scorer
from towpath.rng import Rng
from towpath.training.batch import Batch
from towpath.training.candidates import CandidateSampler
from towpath.training.event_weights import event_weights
from towpath.training.negatives import Draw, TrainingNegatives
from towpath.training.settings import TrainingSettings


@dataclass(frozen=True)
class _Windows:
    """Stretches of training rows [begin, end), each of one user, who has the row at `end` too."""

    users: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __getitem__(self, places: NDArray[np.int64]) -> "_Windows":
        return _Windows(self.users[places], self.begins[places], self.ends[places])


class WindowBatches:
    """Windows of histories in random order; each step is an instance, its positive the item that comes next.

    The first item of a user follows nothing and is no positive. Instances have sampled negatives, or none
    where the loss goes over the whole catalogue anyway. There are no instances for padding.
    """

    def __init__(
        self,
        train: Interactions,
        scorer: Scorer,
        settings: TrainingSettings,
        negatives: TrainingNegatives,
    ) -> None:
        self.train = train
        self._settings, self._negatives = settings, negatives
        weights = event_weights(train, settings)
        self._weights = None if weights is None else Histories(train.histories.starts, weights)
        self._sampler = _candidate_sampler(train, scorer, settings)
        self._longest = scorer.history_length
        self._device = device_of(scorer)
        steps = train.histories.lengths - 1
        steps[negatives.exhausted] = 0
        self._users = np.flatnonzero(steps > 0)
        self._steps = steps[self._users]
        if len(self._users) == 0:
            raise DataError(
                f"A model of sequences learns from what follows what, but none of {train.n_users:,} users "
                "has two training items and one left to be shown; loosen the cleaning, or fit mf."
            )
        # At least one whole window, so that no batch is empty.
        self._batch_size = max(settings.batch_size_for(len(train)), self._longest)
        used = self._steps if settings.windows == "all" else np.minimum(self._steps, self._longest)
        self._instances = int(used.sum())

    def __len__(self) -> int:
        return -(-self._instances // self._batch_size)

    def refresh(self) -> None:
        """Compute the ranking anew if hard negatives are drawn from it."""
        self._negatives.refresh()

    def epoch(self, number: int, rng: Rng, *, name: str = "") -> Iterator[Batch]:
        """The windows of this epoch, about batch_size instances at a time."""
        generator = rng.numpy(name + "order", number)
        windows = self._cut(generator)
        windows = windows[generator.permutation(len(windows.users))]
        draw = None if self._settings.pairs == "catalogue" else self._negatives.drawer(number, rng, name)
        candidates = rng.numpy(name + "candidates", number)
        last = np.cumsum(windows.ends - windows.begins) - 1
        for places in np.split(np.arange(len(last)), np.flatnonzero(np.diff(last // self._batch_size)) + 1):
            batch = self._batch(windows[places], draw)
            yield (
                batch if self._sampler is None else replace(batch, candidates=self._sampler.draw(candidates))
            )

    def _cut(self, generator: np.random.Generator) -> _Windows:
        """The windows of an epoch, user by user."""
        first = self.train.histories.starts[self._users]
        if self._settings.windows == "all":
            return self._cut_all(first, generator)
        spare = np.maximum(self._steps - self._longest, 0)
        skipped = spare if self._settings.windows == "last" else generator.integers(spare + 1)
        begins = first + skipped
        return _Windows(self._users, begins, begins + np.minimum(self._steps, self._longest))

    def _cut_all(self, first: NDArray[np.int64], generator: np.random.Generator) -> _Windows:
        """Whole histories cut into windows of full length, but for the first and the last of a user."""
        head = generator.integers(1, self._longest + 1, size=len(first))  # length of the first window
        counts = 1 + -(-np.maximum(self._steps - head, 0) // self._longest)
        nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        first, head, steps = (np.repeat(column, counts) for column in (first, head, self._steps))
        begins = np.where(nth == 0, 0, head + (nth - 1) * self._longest)
        ends = np.minimum(head + nth * self._longest, steps)
        return _Windows(np.repeat(self._users, counts), first + begins, first + ends)

    def _batch(self, windows: _Windows, draw: Draw | None) -> Batch:
        past = self.train.histories.between(windows.begins, windows.ends, self._longest)
        following = self.train.histories.between(windows.begins + 1, windows.ends + 1, self._longest)
        steps = np.flatnonzero(past != PADDING)
        users = np.repeat(windows.users, past.shape[1])[steps]
        items = following.ravel()[steps, None].astype(np.int64)
        if draw is not None:
            items = draw(items[:, 0], users)
        labels = torch.zeros(items.shape, device=self._device)
        labels[:, 0] = 1
        tensors = (torch.from_numpy(a).to(self._device) for a in (users, past.astype(np.int64), steps))
        weights = self._weigh(windows, steps)
        return Batch(Context(*tensors), torch.from_numpy(items).to(self._device), labels, weights)

    def _weigh(self, windows: _Windows, steps: NDArray[np.int64]) -> Tensor | None:
        """The weight of what followed each step: (b, 1)."""
        if self._weights is None:
            return None
        following = self._weights.between(windows.begins + 1, windows.ends + 1, self._longest)
        return torch.from_numpy(following.ravel()[steps, None]).to(self._device)


def _candidate_sampler(
    train: Interactions, scorer: Scorer, settings: TrainingSettings
) -> CandidateSampler | None:
    """What draws the items of the softmax; None if it goes over all of them, or there is none."""
    if settings.pairs != "catalogue" or not 0 < settings.softmax_negatives < train.n_items:
        return None
    return CandidateSampler(train, settings.softmax_negatives, device_of(scorer))


def refuse_unlearnable(model: type[Scorer], settings: TrainingSettings) -> None:
    """Nothing, unless these settings ask a model of sequences for every item at every step, one by one."""
    if model.trains_on_sequences and settings.pairs == "catalogue" and settings.loss == "logistic":
        raise ConfigError(
            f"{model.__name__} learns from every step of a history, and pairs=catalogue with loss=logistic "
            "would make every item a pair of its own at each step; use loss=softmax, or pairs=sampled."
        )
