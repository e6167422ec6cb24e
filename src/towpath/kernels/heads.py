"""Gradients of many small factorisations with several logistic heads each, trained on the same pairs.

Compiled by numba where it is installed; plain torch otherwise, which tests hold the compiled loop against.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from towpath.kernels.inner_products import arrays, numbered, usable


class Tables(NamedTuple):
    """The parameters of M members with vectors of length d and H heads.

    A row of users or items holds the vectors of all members, then the biases of the first head, and so on.
    """

    users: Tensor  # (users, M d + H M)
    items: Tensor  # (items, M d + H M)
    bias: Tensor  # (H, M)


class HeadTask(NamedTuple):
    """The pairs of a batch and what every head should say of them."""

    users: Tensor  # (b,) codes
    items: Tensor  # (b, k) codes
    targets: Tensor  # (b, k, H) in [0, 1]
    weights: Tensor  # (b, k, H) how much a pair counts for a head; 0: not at all


class BlockTask(NamedTuple):
    """Users and items of which every pair counts, as a negative: all heads should say no."""

    users: Tensor  # (n,) codes, each once
    items: Tensor  # (s,) codes, each once
    weights: Tensor  # (s, H, n) how much a pair counts for a head; 0: not at all

    def pairs(self) -> HeadTask:
        """The same as pairs, one by one."""
        weights = self.weights.permute(2, 0, 1)
        items = self.items.expand(len(self.users), -1)
        return HeadTask(self.users, items, torch.zeros_like(weights), weights)


class MemberTask(NamedTuple):
    """What each member minimises."""

    prices: Tensor  # (H, M) weight of each head's loss
    l2: Tensor  # (M,) penalty on the squared lengths of both vectors of a pair


def vectors_and_biases(rows: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (..., M d + H M) of a table as vectors (..., M, d) and biases (..., H, M)."""
    heads, members = bias.shape
    size = rows.shape[-1] - heads * members
    shape = rows.shape[:-1]
    vectors, biases = rows[..., :size], rows[..., size:]
    return vectors.reshape(*shape, members, -1), biases.reshape(*shape, heads, members)


def head_logits(tables: Tables, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (b, k, H, M) of all heads and squared lengths (b, k, M) of the two vectors.

    logit_h = <p_u, q_i> + a_uh + b_ih + bias_h          for each member, with vectors of its own
    """
    p, of_user = vectors_and_biases(tables.users[users][:, None], tables.bias)
    q, of_item = vectors_and_biases(tables.items[items], tables.bias)
    lengths = p.square().sum(-1) + q.square().sum(-1)
    return (p * q).sum(-1)[..., None, :] + of_user + of_item + tables.bias, lengths


def head_risk(tables: Tables, task: HeadTask, members: MemberTask) -> Tensor:
    """The sum over members, pairs and heads of  price * weight * (logistic loss + l2 * squared lengths)."""
    logits, lengths = head_logits(tables, task.users, task.items)
    losses = softplus(logits) - task.targets[..., None] * logits
    counts = members.prices * task.weights[..., None]  # (b, k, H, M)
    return (counts * (losses + (members.l2 * lengths)[..., None, :])).sum()


def head_gradients(
    tables: Tables,
    task: HeadTask,
    members: MemberTask,
    sparse: tuple[bool, bool],
    block: BlockTask | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `head_risk`, added up for the pairs of a task and of a block.

    A `sparse` one, of users or items, holds the rows of the batch only.
    """
    if not usable(tables.users, tables.items):
        return _by_autograd(tables, task, members, sparse, block)
    from towpath.kernels import compiled_block, compiled_heads

    user_codes, item_codes = [task.users], [task.items]
    if block is not None:
        user_codes, item_codes = [task.users, block.users], [task.items, block.items]
    of_users = _places(tables.users, user_codes, sparse[0])
    of_items = _places(tables.items, item_codes, sparse[1])
    found = Tables(of_users.zeros, of_items.zeros, torch.zeros_like(tables.bias))
    # To take the memory of a tensor takes as long as a short loop: of each once.
    given, learned, adds = arrays(*tables), arrays(*members), arrays(*found)
    places = arrays(of_users.places[0], of_items.places[0])
    pairs = arrays(task.users, task.items, task.targets, task.weights)
    compiled_heads.head_gradients(*given, *pairs[:2], *places, *pairs[2:], *learned, *adds)
    if block is not None:
        places = arrays(of_users.places[1], of_items.places[1])
        pairs = arrays(block.users, block.items, block.weights)
        compiled_block.block_gradients(*given, *pairs[:2], *places, *pairs[2:], *learned, *adds)
    return of_users.whole(found.users, tables.users), of_items.whole(found.items, tables.items), found.bias


class _Places(NamedTuple):
    """Where codes add up: rows of zeros, the row of each code, and which row of the table that is.

    No `rows`: it is the code itself.
    """

    zeros: Tensor
    places: list[Tensor]
    rows: Tensor | None

    def whole(self, values: Tensor, table: Tensor) -> Tensor:
        if self.rows is None:
            return values
        return torch.sparse_coo_tensor(
            self.rows[None], values, table.shape, is_coalesced=True, check_invariants=False
        )


def _places(table: Tensor, codes: list[Tensor], sparse: bool) -> _Places:
    """Where each of these codes adds up."""
    if not sparse:
        return _Places(torch.zeros_like(table), codes, None)
    rows, places = numbered(torch.cat([some.flatten() for some in codes]))
    parts = torch.split(places, [some.numel() for some in codes])
    shaped = [part.view(some.shape) for part, some in zip(parts, codes, strict=True)]
    return _Places(torch.zeros(len(rows), table.shape[1]), shaped, rows)


def _by_autograd(
    tables: Tables,
    task: HeadTask,
    members: MemberTask,
    sparse: tuple[bool, bool],
    block: BlockTask | None,
) -> tuple[Tensor, Tensor, Tensor]:
    with torch.enable_grad():
        own = Tables(*(t.detach().requires_grad_() for t in tables))
        risk = head_risk(own, task, members)
        if block is not None:
            risk = risk + head_risk(own, block.pairs(), members)
        of_users, of_items, of_bias = torch.autograd.grad(risk, own)
    if sparse[0]:
        of_users = of_users.to_sparse(1).coalesce()
    if sparse[1]:
        of_items = of_items.to_sparse(1).coalesce()
    return of_users, of_items, of_bias
