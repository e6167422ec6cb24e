"""The weighted sum of many small factorisations as one factorisation of a given rank."""

from dataclasses import dataclass

import torch
from torch import Tensor

from towpath.kernels.heads import Tables, vectors_and_biases
from towpath.models.factorization import Factorization


@dataclass(frozen=True)
class Sum:
    """A sum of inner products and biases:  <x_u, y_i> + a_u + b_i + bias."""

    users: Tensor  # (users, m)
    items: Tensor  # (items, m)
    user_bias: Tensor  # (users,)
    item_bias: Tensor  # (items,)
    bias: Tensor  # ()


@torch.no_grad()
def sum_of_members(tables: Tables, weights: Tensor) -> Sum:
    """The heads of all members added with weights (H, M); a member's heads share its inner product."""
    (p, of_users), (q, of_items) = (
        vectors_and_biases(table, tables.bias) for table in (tables.users, tables.items)
    )
    own = weights.sum(0)
    # Half of the weight on each side keeps both well scaled; the sign goes to the users.
    half = own.abs().sqrt()
    return Sum(
        users=(p * (half * own.sign())[:, None]).flatten(1),
        items=(q * half[:, None]).flatten(1),
        user_bias=(of_users * weights).sum((1, 2)),
        item_bias=(of_items * weights).sum((1, 2)),
        bias=(tables.bias * weights).sum(),
    )


def compress(users: Tensor, items: Tensor, rank: int) -> tuple[Tensor, Tensor, float]:
    """Vectors of length `rank` whose inner products are nearest to <x_u, y_i>, and the share that is lost.

        X Y' = Qx (Rx Ry') Qy',    Rx Ry' = U S V',    lost = sum of s^2 beyond the rank / sum of s^2

    Exact (lost = 0) where the rank is enough. By QR of both sides, so that no (users, items) matrix is made.
    """
    (q_users, r_users), (q_items, r_items) = torch.linalg.qr(users), torch.linalg.qr(items)
    left, values, right = torch.linalg.svd(r_users @ r_items.T, full_matrices=False)
    kept = min(rank, len(values))
    root = values[:kept].sqrt()
    squares = values.double().square()
    lost = float(squares[kept:].sum() / squares.sum().clamp(min=1e-300))
    return q_users @ left[:, :kept] * root, q_items @ right[:kept].T * root, lost


@torch.no_grad()
def fill(scorer: Factorization, total: Sum) -> float:
    """Put the sum into a factorisation; returns the share of it that its rank could not hold."""
    users, items, lost = compress(total.users, total.items, scorer.settings.embedding_dim)
    for table, vectors, biases in (
        (scorer.users.weight, users, total.user_bias),
        (scorer.items.weight, items, total.item_bias),
    ):
        table.zero_()
        table[:, : vectors.shape[1]] = vectors
        table[:, -1] = biases
    scorer.bias.copy_(total.bias)
    return lost
