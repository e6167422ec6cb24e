"""Inner products of looked-up rows with their gradients, fused: no gathered copies of the rows.

Compiled by numba where it is installed (the extra `fast`); without it models use plain torch, several
times slower. Both give the same numbers up to rounding, and each gives the same floats every time, on any
number of threads.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from towpath.kernels.available import AVAILABLE
from towpath.kernels.threads import run


def usable(users: Tensor, items: Tensor) -> bool:
    """Whether the kernels take these tables: numba is there, and both are float32 on the CPU."""
    return AVAILABLE and all(t.device.type == "cpu" and t.dtype == torch.float32 for t in (users, items))


def inner_products(
    user_table: Tensor,
    item_table: Tensor,
    users: Tensor,
    items: Tensor,
    bias: Tensor,
    *,
    sparse: tuple[bool, bool] = (False, False),
) -> tuple[Tensor, Tensor]:
    """Scores (b, k) of the pairs and their mean squared norm, one number; gradients flow to all three.

        score = <p, q> + b_u + b_i + bias,    norm = mean over the pairs of |p|^2 + |q|^2

    Tables are (n, d + 1) with b_u or b_i in the last column, bias is one number, users (b,) and items (b, k)
    are codes. A `sparse` gradient, of users or of items, holds the rows of the batch only, each once.
    """
    if not torch.is_grad_enabled():
        return _products(user_table, item_table, bias, users, items)
    scores, norm = _InnerProducts.apply(user_table, item_table, bias, users, items, sparse)  # type: ignore[no-untyped-call]
    return scores, norm


def _products(P: Tensor, Q: Tensor, bias: Tensor, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
    from towpath.kernels import compiled

    scores, lengths = torch.empty(items.shape), torch.empty(len(users))
    run(
        compiled.scores_and_lengths,
        items.numel() * P.shape[1],
        *arrays(P, Q, users, items),
        np.float32(bias.item()),
        *arrays(scores, lengths),
    )
    return scores, lengths.sum() / max(1, items.numel())


class _InnerProducts(torch.autograd.Function):
    """The kernels as one differentiable operation."""

    @staticmethod
    def forward(
        ctx: Any,
        P: Tensor,
        Q: Tensor,
        bias: Tensor,
        users: Tensor,
        items: Tensor,
        sparse: tuple[bool, bool],
    ) -> Any:
        ctx.save_for_backward(P, Q, users, items)
        ctx.sparse, ctx.bias_shape = sparse, bias.shape
        return _products(P, Q, bias, users, items)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_score: Tensor, by_norm: Tensor) -> Any:
        P, Q, users, items = ctx.saved_tensors
        of_P, of_Q, of_bias = gradients(P, Q, users, items, by_score, by_norm.item(), sparse=ctx.sparse)
        return of_P, of_Q, of_bias.view(ctx.bias_shape), None, None, None


def gradients(
    P: Tensor,
    Q: Tensor,
    users: Tensor,
    items: Tensor,
    by_score: Tensor,
    by_norm: float,
    *,
    sparse: tuple[bool, bool] = (False, False),
) -> tuple[Tensor, Tensor, Tensor]:
    """What reaches both tables and the bias, from what reaches the scores (b, k) and the norm."""
    from towpath.kernels import compiled

    user_places, to_P, of_P = _gradient_of(P, users, sparse[0])
    item_places, to_Q, of_Q = _gradient_of(Q, items, sparse[1])
    pairs, steps = arrays(P, Q, users, items), items.numel() * P.shape[1]
    slopes, shrink = by_score.contiguous().numpy(), np.float32(by_norm) / np.float32(max(1, items.numel()))
    run(compiled.user_gradients, steps, *pairs, user_places.numpy(), slopes, shrink, to_P.numpy())
    run(compiled.item_gradients, steps, *pairs, item_places.numpy(), slopes, shrink, to_Q.numpy())
    return of_P, of_Q, by_score.sum()


def _gradient_of(table: Tensor, codes: Tensor, sparse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Where in `values` each code adds up, the values, still zero, and the gradient that is made of them."""
    if not sparse:
        values = torch.zeros_like(table)
        return codes, values, values
    rows, places = numbered(codes)
    values = torch.zeros(len(rows), table.shape[1])
    whole = torch.sparse_coo_tensor(
        rows[None], values, table.shape, is_coalesced=True, check_invariants=False
    )
    return places, values, whole


def numbered(codes: Tensor) -> tuple[Tensor, Tensor]:
    """The different codes as they first occur, and each code as its number among them, of the same shape."""
    from towpath.kernels import compiled

    rows, places = torch.empty(codes.numel(), dtype=torch.long), torch.empty_like(codes)
    count = compiled.number_rows(*arrays(codes.reshape(-1), rows, places.view(-1)))
    return rows[:count], places


def arrays(*tensors: Tensor) -> list[Any]:
    """The memory of the tensors as numba takes it."""
    return [t.detach().numpy() for t in tensors]
