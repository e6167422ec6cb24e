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
    user_table: Tensor, item_table: Tensor, users: Tensor, items: Tensor, *, sparse: bool = False
) -> tuple[Tensor, Tensor]:
    """Scores and squared norms of each pair, (b, k) each; gradients flow to both tables.

        score = <p, q> + b_u + b_i,    norm = |p|^2 + |q|^2

    Tables are (n, d + 1) with the bias in the last column; users (b,), items (b, k) are codes. `sparse`
    gradients hold the rows of the batch only, each once.
    """
    scores, norms = _InnerProducts.apply(user_table, item_table, users, items, sparse)  # type: ignore[no-untyped-call]
    return scores, norms


class _InnerProducts(torch.autograd.Function):
    """The kernels as one differentiable operation."""

    @staticmethod
    def forward(ctx: Any, P: Tensor, Q: Tensor, users: Tensor, items: Tensor, sparse: bool) -> Any:
        from towpath.kernels import compiled

        ctx.save_for_backward(P, Q, users, items)
        ctx.sparse = sparse
        scores, norms = torch.empty(items.shape), torch.empty(items.shape)
        run(
            compiled.scores_and_norms,
            items.numel() * P.shape[1],
            *arrays(P, Q, users, items, scores, norms),
        )
        return scores, norms

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        P, Q, users, items = ctx.saved_tensors
        by_score, by_norm = (g.contiguous() for g in gradients)
        if not ctx.sparse:
            return *_gradients(P, Q, users, items, by_score, by_norm), None, None, None
        # The same on the rows of the batch alone, renumbered.
        user_rows, users = numbered(users)
        item_rows, items = numbered(items)
        to_P, to_Q = _gradients(P[user_rows], Q[item_rows], users, items, by_score, by_norm)
        return _at(user_rows, to_P, P), _at(item_rows, to_Q, Q), None, None, None


def _gradients(
    P: Tensor, Q: Tensor, users: Tensor, items: Tensor, by_score: Tensor, by_norm: Tensor
) -> tuple[Tensor, Tensor]:
    """What the pairs send to the rows of both tables, from what they get by their scores and norms."""
    from towpath.kernels import compiled

    to_P, to_Q = torch.zeros_like(P), torch.zeros_like(Q)
    run(
        compiled.gradients,
        2 * items.numel() * P.shape[1],
        *arrays(P, Q, users, items, by_score, by_norm, to_P, to_Q),
    )
    return to_P, to_Q


def numbered(codes: Tensor) -> tuple[Tensor, Tensor]:
    """The different codes as they first occur, and each code as its number among them, of the same shape."""
    from towpath.kernels import compiled

    rows, places = torch.empty(codes.numel(), dtype=torch.long), torch.empty_like(codes)
    count = compiled.number_rows(*arrays(codes.reshape(-1), rows, places.view(-1)))
    return rows[:count], places


def _at(rows: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """A gradient of the table that is zero but for these rows."""
    return torch.sparse_coo_tensor(rows[None], values, table.shape, is_coalesced=True, check_invariants=False)


def arrays(*tensors: Tensor) -> list[Any]:
    """The memory of the tensors as numba takes it."""
    return [t.detach().numpy() for t in tensors]
