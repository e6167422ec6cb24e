"""Inner products of looked-up rows with their gradients, fused: no gathered copies of the rows.

Compiled by numba where it is installed (the extra `fast`); without it models use plain torch, some three
times slower. Both give the same numbers up to rounding, and each gives the same floats every time, on any
number of threads.
"""

from typing import Any

import torch
from torch import Tensor

from towpath.kernels.available import AVAILABLE
from towpath.kernels.threads import run


def usable(users: Tensor, items: Tensor) -> bool:
    """Whether the kernels take these tables: numba is there, and both are float32 on the CPU."""
    return AVAILABLE and all(t.device.type == "cpu" and t.dtype == torch.float32 for t in (users, items))


def inner_products(
    user_table: Tensor, item_table: Tensor, users: Tensor, items: Tensor
) -> tuple[Tensor, Tensor]:
    """Scores and squared norms of each pair, (b, k) each; gradients flow to both tables.

        score = <p, q> + b_u + b_i,    norm = |p|^2 + |q|^2

    Tables are (n, d + 1) with the bias in the last column; users (b,), items (b, k) are codes.
    """
    scores, norms = _InnerProducts.apply(user_table, item_table, users, items)  # type: ignore[no-untyped-call]
    return scores, norms


class _InnerProducts(torch.autograd.Function):
    """The kernels as one differentiable operation."""

    @staticmethod
    def forward(ctx: Any, user_table: Tensor, item_table: Tensor, users: Tensor, items: Tensor) -> Any:
        from towpath.kernels import compiled

        ctx.save_for_backward(user_table, item_table, users, items)
        scores, norms = torch.empty(items.shape), torch.empty(items.shape)
        run(
            compiled.scores_and_norms,
            items.numel() * user_table.shape[1],
            *_arrays(user_table, item_table, users, items, scores, norms),
        )
        return scores, norms

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        from towpath.kernels import compiled

        user_table, item_table, users, items = ctx.saved_tensors
        by_score, by_norm = (g.contiguous() for g in gradients)
        to_users, to_items = torch.zeros_like(user_table), torch.zeros_like(item_table)
        run(
            compiled.gradients,
            2 * items.numel() * user_table.shape[1],
            *_arrays(user_table, item_table, users, items, by_score, by_norm, to_users, to_items),
        )
        return to_users, to_items, None, None


def _arrays(*tensors: Tensor) -> list[Any]:
    return [t.detach().numpy() for t in tensors]
