"""Gradients of many small factorisations with several logistic heads each, trained on the same pairs.

Compiled by numba where it is installed; plain torch otherwise, which the tests hold the compiled loop against.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from towpath.kernels.inner_products import arrays, numbered, usable


class HeadTask(NamedTuple):
    """The pairs of a batch and what every head should say of them.

    M members, H heads, G groups of members that see different weights.
    """

    users: Tensor  # (b,) codes
    items: Tensor  # (b, k) codes
    targets: Tensor  # (b, k, H) in [0, 1]
    weights: Tensor  # (G, b, k, H) how much a pair counts for a head; 0: not at all


class MemberTask(NamedTuple):
    """What each member minimises."""

    groups: Tensor  # (M,) which weights it sees
    prices: Tensor  # (M, H) weight of each head's loss
    l2: Tensor  # (M,) penalty on the squared lengths of both vectors of a pair


def head_logits(P: Tensor, Q: Tensor, bias: Tensor, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (b, k, M, H) of all heads and squared lengths (b, k, M) of the two vectors.

        logit_h = <p_u, q_i> + a_uh + b_ih + bias_h          for each member, with vectors of its own

    P: (users, M (d + H)), Q: (items, M (d + H)): of each member the vector, then the biases of its heads.
    """
    members, heads = bias.shape
    d = P.shape[1] // members - heads
    p = P[users].view(len(users), 1, members, d + heads)
    q = Q[items].view(*items.shape, members, d + heads)
    products = (p[..., :d] * q[..., :d]).sum(-1)
    lengths = p[..., :d].square().sum(-1) + q[..., :d].square().sum(-1)
    return products[..., None] + p[..., d:] + q[..., d:] + bias, lengths


def head_risk(P: Tensor, Q: Tensor, bias: Tensor, task: HeadTask, members: MemberTask) -> Tensor:
    """The sum over members, pairs and heads of  price * weight * (logistic loss + l2 * squared lengths)."""
    logits, lengths = head_logits(P, Q, bias, task.users, task.items)
    losses = softplus(logits) - task.targets[:, :, None] * logits
    counts = members.prices * task.weights[members.groups].permute(1, 2, 0, 3)  # (b, k, M, H)
    return (counts * (losses + (members.l2 * lengths)[..., None])).sum()


def head_gradients(
    P: Tensor, Q: Tensor, bias: Tensor, task: HeadTask, members: MemberTask, sparse: tuple[bool, bool]
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `head_risk`; a `sparse` one, of P or of Q, holds the rows of the batch only."""
    if not usable(P, Q):
        return _by_autograd(P, Q, bias, task, members, sparse)
    from towpath.kernels.compiled_heads import head_gradients as loop

    user_rows, user_places = _places(P, task.users, sparse[0])
    item_rows, item_places = _places(Q, task.items, sparse[1])
    to_P, to_Q = (torch.zeros(n, t.shape[1]) for n, t in ((user_rows, P), (item_rows, Q)))
    to_bias = torch.zeros_like(bias)
    pairs = (task.users, task.items, user_places.places, item_places.places, task.targets, task.weights)
    loop(*arrays(P, Q, bias, *pairs, *members, to_P, to_Q, to_bias))
    return user_places.whole(to_P, P), item_places.whole(to_Q, Q), to_bias


class _Places(NamedTuple):
    """Where each code adds up, and which row of the table that is; no rows: it is the code itself."""

    places: Tensor
    rows: Tensor | None

    def whole(self, values: Tensor, table: Tensor) -> Tensor:
        if self.rows is None:
            return values
        return torch.sparse_coo_tensor(
            self.rows[None], values, table.shape, is_coalesced=True, check_invariants=False
        )


def _places(table: Tensor, codes: Tensor, sparse: bool) -> tuple[int, _Places]:
    """How many rows of gradient there are, and where each code adds up."""
    if not sparse:
        return len(table), _Places(codes, None)
    rows, places = numbered(codes)
    return len(rows), _Places(places, rows)


def _by_autograd(
    P: Tensor, Q: Tensor, bias: Tensor, task: HeadTask, members: MemberTask, sparse: tuple[bool, bool]
) -> tuple[Tensor, Tensor, Tensor]:
    with torch.enable_grad():
        tables = [t.detach().requires_grad_() for t in (P, Q, bias)]
        found = torch.autograd.grad(head_risk(*tables, task, members), tables)
    to_P, to_Q = (g.to_sparse(1).coalesce() if s else g for g, s in zip(found, sparse, strict=False))
    return to_P, to_Q, found[2]
