"""Several processes that train one model together: data-parallel, each with a copy of all tables.

Every process makes the same batches, since generators are found by name, and takes its slice of each.
Gradients are added up before the step, so that all copies move as one process with the whole batch would.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from towpath.models.scorer import Context
from towpath.training.batch import Batch


@dataclass
class Workers:
    """The processes that train together, as one of them sees them."""

    rank: int
    size: int
    share: float = 1.0  # of the batch in work, that this process has

    def slice(self, batch: Batch) -> Batch:
        """The rows of the batch that this process looks at; all of them if there are too few to share."""
        rows = len(batch.labels)
        context = batch.context
        sequences = rows if context.steps is None else len(context.histories)
        if sequences < self.size:
            self.share = 1 / self.size
            return batch
        begin, end = (sequences * n // self.size for n in (self.rank, self.rank + 1))
        mine = _rows(context, begin, end)
        self.share = len(batch.labels[mine]) / rows
        items = batch.items if len(batch.items) < rows else batch.items[mine]
        weights = None if batch.weights is None else batch.weights[mine]
        return Batch(_sliced(context, mine, begin, end), items, batch.labels[mine], weights, batch.candidates)

    def add_up(self, gradients: Mapping[Tensor, Tensor]) -> dict[Tensor, Tensor]:
        """The gradients of the whole batch, from those of the slices, each counting by its share."""
        summed = {}
        for parameter, gradient in gradients.items():
            mine = (gradient.coalesce() if gradient.is_sparse else gradient) * self.share
            dist.all_reduce(mine)
            summed[parameter] = mine
        return summed

    def total(self, value: Tensor) -> Tensor:
        """The sum of a number over all processes."""
        value = value.clone()
        dist.all_reduce(value)
        return value


def _rows(context: Context, begin: int, end: int) -> slice | Tensor:
    """The instances of these sequences; without shared sequences, these instances."""
    if context.steps is None:
        return slice(begin, end)
    wide = context.histories.shape[1]
    return (context.steps >= begin * wide) & (context.steps < end * wide)


def _sliced(context: Context, mine: slice | Tensor, begin: int, end: int) -> Context:
    steps = None if context.steps is None else context.steps[mine] - begin * context.histories.shape[1]
    return Context(context.users[mine], context.histories[begin:end], steps)


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
