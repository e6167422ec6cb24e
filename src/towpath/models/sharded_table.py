"""A table of vectors whose rows are spread over the processes that train together.

Every process has a run of rows; with n rows and W processes those from rank * ceil(n / W) on, as torch's own
sharding has it. A look-up sends each code to the owner of its row and gets the row back; gradients go the
same way, and the owner adds up those of all processes. All processes must look up at the same time, each
whatever it needs.
"""

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from towpath.kernels.lazy_adam import SPARSE_FROM_ROWS

# Rows that are drawn or sent at once: what that needs on the way stays small. A multiple of 16, since torch
# draws normal numbers in blocks of 16.
_ROWS_AT_ONCE = 1 << 16


class ShardedTable(nn.Module):
    """The rows [begin, end) of a table of so many rows."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.rows, self.rank, self.size = rows, dist.get_rank(), dist.get_world_size()
        self.per_process = -(-rows // self.size)
        self.begin, self.end = (min(rows, n * self.per_process) for n in (self.rank, self.rank + 1))
        memory = np.zeros((self.end - self.begin, width), dtype=np.float32)
        self.weight = nn.Parameter(torch.from_numpy(memory))
        self.sparse = rows > SPARSE_FROM_ROWS  # as a table that is not sharded

    def forward(self, codes: Tensor) -> Tensor:
        """The rows of these codes (n,), which ascend: (n, width); gradients reach the rows' owners."""
        found: Tensor = _LookUp.apply(self.weight, codes, self)  # type: ignore[no-untyped-call]
        return found

    def draw(self, std: float, generator: torch.Generator) -> None:
        """Draw all rows but for their last column, which is zero, as one process draws its whole table."""
        width = self.weight.shape[1]
        with torch.no_grad():
            for start in range(0, self.rows, _ROWS_AT_ONCE):
                # Those of the others are drawn too, and forgotten: the generator cannot skip them.
                some = torch.empty(min(_ROWS_AT_ONCE, self.rows - start), width)
                some.normal_(0, std, generator=generator)
                some[:, -1] = 0
                begin, end = max(self.begin, start), min(self.end, start + len(some))
                if begin < end:
                    self.weight[begin - self.begin : end - self.begin] = some[begin - start : end - start]

    def counts(self, codes: Tensor) -> Tensor:
        """How many of the ascending codes belong to each process: (processes,)."""
        return torch.bincount(codes // self.per_process, minlength=self.size)

    def gather(self, into: Tensor | None) -> None:
        """Bring all rows to the first process, into (rows, width); the others have nothing to fill."""
        if into is not None:
            into[: self.end] = self.weight.detach()
        for owner in range(1, self.size):
            begin, end = (min(self.rows, n * self.per_process) for n in (owner, owner + 1))
            for start in range(begin, end, _ROWS_AT_ONCE):
                stop = min(end, start + _ROWS_AT_ONCE)
                if self.rank == owner:
                    dist.send(self.weight.detach()[start - begin : stop - begin].contiguous(), 0)
                elif into is not None:
                    dist.recv(into[start:stop], owner)


class _LookUp(torch.autograd.Function):
    """Codes to their owners, rows back; and gradients to the owners again."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, codes: Tensor, table: ShardedTable) -> Tensor:
        wanted = table.counts(codes)
        asked = torch.empty_like(wanted)
        dist.all_to_all_single(asked, wanted)
        ctx.splits = wanted.tolist(), asked.tolist()
        ctx.own = exchange(codes, *ctx.splits) - table.begin  # my rows that somebody asked for
        ctx.shape, ctx.sparse = weight.shape, table.sparse
        return exchange(weight.detach()[ctx.own], *reversed(ctx.splits))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_rows: Tensor) -> Any:
        received = exchange(by_rows.contiguous(), *ctx.splits)
        if not ctx.sparse:
            return torch.zeros(ctx.shape).index_add_(0, ctx.own, received), None, None
        found = torch.sparse_coo_tensor(ctx.own[None], received, ctx.shape, check_invariants=False)
        return found, None, None


def exchange(rows: Tensor, to_each: list[int], from_each: list[int]) -> Tensor:
    """Send runs of rows of these lengths to the processes, in their order, and receive theirs."""
    received = rows.new_empty((sum(from_each), *rows.shape[1:]))
    dist.all_to_all_single(received, rows, from_each, to_each)
    return received
