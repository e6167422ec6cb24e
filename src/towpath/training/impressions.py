"""Batches of a log of impressions: what was shown, whether it was clicked, and what else there was."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Histories, Interactions
from towpath.data.negatives import NegativeSampler, PairSet
from towpath.device import device_of
from towpath.errors import DataError
from towpath.models.scorer import Context, Scorer
from towpath.ranking.snapshot import LiveRanking
from towpath.rng import Rng
from towpath.training.batch import Batch
from towpath.training.settings import TrainingSettings

# Steps an epoch: small logs in large batches would get too few.
_STEPS = 100
_SMALLEST, _LARGEST = 256, 4096


@dataclass(frozen=True)
class ImpressionBatch:
    """Impressions, each with items drawn from the catalogue that its user has not clicked.

    Column 0 of `items` is what was shown; the others are draws, a few of which may have been shown as well.
    """

    rows: NDArray[np.int64]  # (b,) places in the table of impressions
    context: Context  # of b users, each with what they had clicked before
    items: Tensor  # (b, 1 + n)
    clicks: Tensor  # (b,) 1 where what was shown was clicked
    shown: Tensor  # (b, 1 + n) 1 where the pair is in the log, whenever it was shown

    def to(self, device: torch.device) -> "ImpressionBatch":
        """The same batch on this device."""
        context = Context(self.context.users.to(device), self.context.histories.to(device))
        tensors = (tensor.to(device) for tensor in (self.items, self.clicks, self.shown))
        return ImpressionBatch(self.rows, context, *tensors)


class ImpressionBatches:
    """Makes the batches of any epoch: every impression once, each with fresh draws."""

    def __init__(
        self,
        train: Interactions,
        negatives: int,
        batch_size: int = 0,
        hard: "HardNegatives | None" = None,
    ) -> None:
        self.impressions = impressions_of(train)
        self._hard = hard
        self._negatives = negatives
        self._sampler = NegativeSampler(train)
        self._shown = PairSet(self.impressions)
        self._past = _Past(self.impressions)
        users = self.impressions.users
        self._rows = np.flatnonzero(~np.isin(users, self._sampler.exhausted))
        size = batch_size or min(_LARGEST, max(_SMALLEST, len(self._rows) // _STEPS))
        self._batch_size = min(size, max(1, len(self._rows)))

    def __len__(self) -> int:
        return -(-len(self._rows) // self._batch_size)

    def epoch(
        self,
        number: int,
        rng: Rng,
        longest: int = 0,
        *,
        name: str = "",
    ) -> Iterator[ImpressionBatch]:
        """The batches of this epoch, with histories of at most `longest` clicks in the contexts.

        `name` sets apart several passes of one epoch.
        """
        order = rng.numpy(name + "impressions", number).permutation(self._rows)
        draw = rng.numpy(name + "catalogue", number)
        if self._hard is not None:
            self._hard.begin(rng.torch(name + "head", number))
        for start in range(0, len(order), self._batch_size):
            # By user, as the rows of a table lie.
            yield self._batch(np.sort(order[start : start + self._batch_size]), draw, longest)

    def context(self, rows: NDArray[np.int64], longest: int) -> Context:
        """The users of these impressions, each with the last `longest` items they had clicked before."""
        users = self.impressions.users[rows].astype(np.int64)
        return Context(torch.from_numpy(users), torch.from_numpy(self._past.before(rows, longest)))

    def _batch(self, rows: NDArray[np.int64], draw: np.random.Generator, longest: int) -> ImpressionBatch:
        log = self.impressions
        users = log.users[rows].astype(np.int64)
        items = np.empty((len(rows), 1 + self._negatives), dtype=np.int64)
        items[:, 0] = log.items[rows]
        begin = 1
        if self._hard is not None:
            begin += self._hard.count
            items[:, 1:begin] = self._hard.draw(users)
        if begin < items.shape[1]:
            self._sampler.fill(users, items, begin, draw)
        shown = self._shown.contains(np.repeat(users, items.shape[1]), items.ravel()).reshape(items.shape)
        clicks = torch.from_numpy(np.asarray(log.labels)[rows].astype(np.float32))
        return ImpressionBatch(
            rows,
            self.context(rows, longest),
            torch.from_numpy(items),
            clicks,
            torch.from_numpy(shown.astype(np.float32)),
        )


class HardNegatives:
    """Draws from the top of a scorer's ranking, taken anew every epoch."""

    def __init__(self, scorer: Scorer, train: Interactions, settings: TrainingSettings) -> None:
        self.count, self._depth = settings.hard_negatives, settings.hard_negative_depth
        self._ranking = LiveRanking(scorer, train, shown=1, depth=self._depth)

    def begin(self, generator: torch.Generator) -> None:
        """Take the ranking; the draws of this epoch come from the generator."""
        self._ranking.refresh()
        self._generator = generator

    def draw(self, users: NDArray[np.int64]) -> NDArray[np.int64]:
        """Items of the top of each user's ranking: (b, count)."""
        who = torch.from_numpy(users)
        return self._ranking.current().draw(who, self.count, self._depth, self._generator).numpy()


class ShownBatches:
    """What was shown, clicked or not, in the form of all batches: one item in each row."""

    def __init__(
        self,
        train: Interactions,
        scorer: Scorer,
        batch_size: int = 0,
        history_length: int | None = None,
    ) -> None:
        self.train, self._device = train, device_of(scorer)
        self._longest = scorer.history_length if history_length is None else history_length
        self._batches = ImpressionBatches(train, 0, batch_size)

    def __len__(self) -> int:
        return len(self._batches)

    def refresh(self) -> None:
        """Nothing to get ready: no pair is drawn."""

    def epoch(self, number: int, rng: Rng, *, name: str = "") -> Iterator[Batch]:
        """Every impression once."""
        for batch in self._batches.epoch(number, rng, self._longest, name=name):
            here = batch.to(self._device)
            yield Batch(here.context, here.items, here.clicks[:, None])


class _Past:
    """What each user had clicked before each impression."""

    def __init__(self, impressions: Interactions) -> None:
        labels = np.asarray(impressions.labels)
        self._clicks: Histories = impressions.positives.histories
        self._users = impressions.users
        self._before = np.cumsum(labels) - labels  # (n,) clicks of all users up to that row

    def before(self, rows: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
        """The last `longest` clicks of the user before each of these rows, padded on the left: (b, h)."""
        if longest == 0:
            return np.empty((len(rows), 0), dtype=np.int64)
        return self._clicks.between(self._clicks.starts[self._users[rows]], self._before[rows], longest)


def impressions_of(train: Interactions) -> Interactions:
    """The log of impressions that the positives were clicked in."""
    if train.impressions is None or train.impressions.labels is None:
        raise DataError(
            f"This method learns from what was shown and not clicked, but the log of {len(train):,} training "
            "events holds positives alone; bring a log of impressions with a 0/1 column of clicks, or use "
            "the method 'plain'."
        )
    if train.impressions.labels.all():
        raise DataError(
            f"This method learns from what was shown and not clicked, but all {len(train.impressions):,} "
            "impressions of the training part are clicked; check the column of clicks."
        )
    return train.impressions
