"""Several processes that train one model together, each on its slice of every batch.

Every process makes the same batches, since generators are found by name, and takes its slice of each.
Gradients are added up before the step, so that all copies move as one process with the whole batch would.
Tables that are sharded (models/sharded_table.py) add up theirs themselves.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist
from torch import Tensor

from towpath.models.scorer import Context, Scorer
from towpath.training.batch import Batch


@dataclass(frozen=True)
class Slice:
    """What one process has of a batch."""

    batch: Batch
    share: float  # of the rows; where all have the whole batch, one of as many as there are processes
    rows: slice | Tensor  # which rows of the whole batch


@dataclass(frozen=True)
class Workers:
    """The processes that train together, as one of them sees them."""

    rank: int
    size: int

    def slice(self, batch: Batch) -> Slice:
        """The rows of the batch that this process looks at; all of them if there are too few to share."""
        rows, context = len(batch.labels), batch.context
        sequences = rows if context.steps is None else len(context.histories)
        if sequences < self.size:
            return Slice(batch, 1 / self.size, slice(None))
        begin, end = (sequences * n // self.size for n in (self.rank, self.rank + 1))
        mine = _rows(context, begin, end)
        items = batch.items if len(batch.items) < rows else batch.items[mine]
        weights = None if batch.weights is None else batch.weights[mine]
        sliced = _sliced(context, mine, begin, end)
        own = Batch(sliced, items, batch.labels[mine], weights, batch.candidates)
        return Slice(own, len(own.labels) / rows, mine)

    def gather(self, part: Slice, values: Tensor, rows: int) -> Tensor:
        """What all processes have for their slices of a batch of so many rows, put together: (rows, ...)."""
        if len(part.batch.labels) == rows:
            return values  # everybody has all of it
        whole = values.new_zeros(rows, *values.shape[1:])
        whole[part.rows] = values
        dist.all_reduce(whole)
        return whole

    def add_up(self, gradients: Mapping[Tensor, Tensor]) -> dict[Tensor, Tensor]:
        """The gradients of the whole batch, from those of the slices."""
        summed = {}
        for parameter, gradient in gradients.items():
            mine = gradient.coalesce() if gradient.is_sparse else gradient.clone()
            dist.all_reduce(mine)
            summed[parameter] = mine
        return summed

    def total(self, value: Tensor) -> Tensor:
        """The sum of a number over all processes."""
        value = value.clone()
        dist.all_reduce(value)
        return value


def slice_of(batch: Batch, found: Workers | None) -> Slice:
    """What this process has of a batch: all of it if it trains alone."""
    return Slice(batch, 1.0, slice(None)) if found is None else found.slice(batch)


def shared_scores(found: Workers | None, scorer: Scorer, batch: Batch, items: Tensor) -> Tensor:
    """Scores (b, k) of these items for the users of a batch, each process scoring its slice."""
    if found is None:
        return scorer.score(batch.context, items)
    part = found.slice(replace(batch, items=items))
    return found.gather(part, scorer.score(part.batch.context, part.batch.items), len(batch.labels))


def _rows(context: Context, begin: int, end: int) -> slice | Tensor:
    """The instances of these sequences; without shared sequences, these instances."""
    if context.steps is None:
        return slice(begin, end)
    wide = context.histories.shape[1]
    return (context.steps >= begin * wide) & (context.steps < end * wide)


def _sliced(context: Context, mine: slice | Tensor, begin: int, end: int) -> Context:
    histories = context.histories[begin:end]
    if context.steps is None:
        return Context(context.users[mine], histories)
    before = begin * histories.shape[1]
    slice_of = int((context.steps < before).sum()), len(context.users)
    return Context(context.users[mine], histories, context.steps[mine] - before, slice_of=slice_of)


def workers() -> Workers | None:
    """The processes that this one trains with; None if it trains alone."""
    if not dist.is_available() or not dist.is_initialized():
        return None
    return Workers(dist.get_rank(), dist.get_world_size())


def leads() -> bool:
    """Whether this process writes what all of them would write."""
    found = workers()
    return found is None or found.rank == 0


@contextmanager
def joined() -> Iterator[None]:
    """A block in which this process is one of those that torchrun, or Spark's TorchDistributor, started."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        yield
        dist.barrier()  # nobody leaves while another still waits for its numbers
    finally:
        dist.destroy_process_group()
