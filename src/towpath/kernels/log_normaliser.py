"""The log-normaliser of a softmax over a whole catalogue, without ever holding all of its logits."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Most bytes of logits that are held at once.
BUFFER_BYTES = 2**26
# What a core's cache takes: the three matrix products of a chunk of this size need not fetch it again.
_CACHED_BYTES = 2**22
# Fewer rows than this waste the matrix products, however many items there are.
_FEWEST_ROWS = 64


def weighted_log_normaliser(
    states: Tensor,
    table: Tensor,
    weights: Tensor,
    *,
    buffer_bytes: int = BUFFER_BYTES,
    product_dtype: torch.dtype | None = None,
) -> Tensor:
    """Weighted sum over the rows of states (b, d) of the log-normaliser over the rows of table (n, d).

        sum_j  w_j log sum_i exp <s_j, t_i>

    Gradients flow to states and table, not to the weights (b,). Both are worked out in the forward pass, a
    chunk of states at a time, so that at most `buffer_bytes` of logits exist at once (one row at least) and
    none is computed twice. The three matrix products are done in `product_dtype`, by default the table's;
    the exponentials and all sums over items are not.
    """
    dtype = product_dtype or table.dtype
    return _WeightedLogNormaliser.apply(states, table, weights, buffer_bytes, dtype)  # type: ignore[no-untyped-call]


class _WeightedLogNormaliser(torch.autograd.Function):
    """The chunks as one differentiable operation."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, table: Tensor, weights: Tensor, buffer_bytes: int, dtype: torch.dtype
    ) -> Tensor:
        row_bytes = table.element_size() * len(table)
        rows = max(1, min(buffer_bytes // row_bytes, max(_FEWEST_ROWS, _CACHED_BYTES // row_bytes)))
        narrow = table.to(dtype)
        # Held from chunk to chunk: fresh memory of this size costs as much as the products.
        buffer = table.new_empty(min(rows, len(states)), len(table))
        narrowed = buffer if dtype == table.dtype else torch.empty_like(buffer, dtype=dtype)
        to_states, to_table = torch.empty_like(states), torch.zeros_like(table)
        total = table.new_zeros(())
        for begin in range(0, len(states), rows):
            chunk = slice(begin, begin + rows)
            state, weight = states[chunk], weights[chunk]
            logits, products = buffer[: len(state)], narrowed[: len(state)]
            logits.copy_(torch.mm(state.to(dtype), narrow.T, out=products))
            highest = logits.amax(1, keepdim=True)
            exponentials = logits.sub_(highest).exp_()
            sums = exponentials.sum(1, keepdim=True)
            total += weight @ (sums.log_() + highest)[:, 0]
            # w softmax = w e / sum; the row's factor goes to the narrow side of each product.
            factor = weight[:, None] * torch.exp(-sums)
            products.copy_(exponentials)
            torch.mul(torch.mm(products, narrow), factor, out=to_states[chunk])
            _add_product(to_table, products.T, (state * factor).to(dtype))
        ctx.save_for_backward(to_states, to_table)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        to_states, to_table = ctx.saved_tensors
        return gradient * to_states, gradient * to_table, None, None, None


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right to the total, which may be of a wider type."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total += torch.mm(left, right)
