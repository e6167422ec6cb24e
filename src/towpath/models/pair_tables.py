"""A vector for every user and every item, and what neural models do with them first."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from towpath.data.interactions import Interactions
from towpath.kernels.inner_products import numbered, usable
from towpath.kernels.lazy_adam import SPARSE_FROM_ROWS
from towpath.memory import refuse_beyond
from towpath.models.item_table import start_vectors
from towpath.models.scorer import Context, Sizes
from towpath.rng import Rng


def table_of(rows: int, width: int) -> nn.Embedding:
    """A table of vectors, to be filled; a large one is trained by the rows of each batch alone."""
    refuse_beyond(
        4 * rows * width, f"A table of {rows:,} vectors of {width:,} numbers", "lower embedding_dim"
    )
    # In numpy's memory: it asks for large pages, torch does not, and look-ups go all over the table.
    memory = np.empty((rows, width), dtype=np.float32)
    memory[:] = 0
    return nn.Embedding(rows, width, sparse=rows > SPARSE_FROM_ROWS, _weight=torch.from_numpy(memory))


@dataclass(frozen=True)
class ItemsOnce:
    """Different items with their vectors, and which pairs they are in."""

    items: Tensor  # (n,) codes
    vectors: Tensor  # (n, d)
    places: Tensor | None  # (b, k) rows of `items`; None: all users share all of them, k = n
    shares: Tensor | None  # (n,) the share of all pairs that each is in; None: all the same

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all pairs of what each item has (n,)."""
        return values.mean() if self.shares is None else values @ self.shares


@dataclass(frozen=True)
class UsersOnce:
    """Users with their vectors, and who of a batch is which of them."""

    users: Tensor  # (n,) codes
    vectors: Tensor  # (n, d)
    places: Tensor | None  # (b,) rows of `users`; None: they are the batch as it is
    shares: Tensor | None  # (n,) the share of the users that each is; None: all the same

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all users of what each has (n,)."""
        return values.mean() if self.shares is None else values @ self.shares


def _shares(places: Tensor, rows: int) -> Tensor:
    return torch.bincount(places.flatten(), minlength=rows) / places.numel()


class PairTables(nn.Module):
    """Vectors p_u of users and q_i of items, of the same length."""

    def __init__(self, sizes: Sizes, width: int) -> None:
        super().__init__()
        self.users, self.items = table_of(sizes.users, width), table_of(sizes.items, width)

    def initialise(self, train: Interactions, rng: Rng, item_start: str, std: float) -> tuple[str, ...]:
        """Draw the users' vectors and start those of the items; what there is to say about that."""
        start = start_vectors(train, rng, self.items.embedding_dim, item_start, std)
        with torch.no_grad():
            self.users.weight.normal_(0, std, generator=rng.torch("initialise", "users"))
            self.items.weight.copy_(start.vectors)
        return start.remarks

    def forward(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors of the users (b, d), and of the items: (b, k, d), or (k, d) where all share them."""
        return self.users(context.users), self.items(items[0] if len(items) == 1 else items)

    def takes_kernels(self) -> bool:
        """Whether the fused kernels can read the tables."""
        return _open(self.users) and _open(self.items) and usable(self.users.weight, self.items.weight)

    def items_once(self, items: Tensor) -> ItemsOnce | None:
        """Each of the items (b, k) once: what belongs to an item alone need not be computed for every pair.

        None where somebody listens to the look-ups, who is told of every pair.
        """
        if self.items._forward_hooks:
            return None
        if len(items) == 1:
            return ItemsOnce(items[0], self.items(items[0]), None, None)
        if _open(self.items) and items.numel() > self.items.num_embeddings:
            every = torch.arange(self.items.num_embeddings, device=items.device)
            return ItemsOnce(every, self.items.weight, items, _shares(items, len(every)))
        rows, places = numbered(items) if self.takes_kernels() else torch.unique(items, return_inverse=True)
        return ItemsOnce(rows, self.items(rows), places, _shares(places, len(rows)))

    def users_once(self, users: Tensor) -> UsersOnce:
        """Each of the users (b,) once, where that can be found out cheaply and nobody listens."""
        if not self.takes_kernels():
            return UsersOnce(users, self.users(users), None, None)
        rows, places = numbered(users)
        return UsersOnce(rows, distinct_rows(self.users, rows), places, _shares(places, len(rows)))

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """The vectors of user and item end to end: (b, k, 2 d)."""
        user, item = self.users(context.users)[:, None], self.items(items)
        shape = (len(context.users), items.shape[1], -1)
        return torch.cat([user.expand(shape), item.expand(shape)], dim=2)

    def item_similarity(self, items: Tensor) -> Tensor:
        """Cosine of the item vectors of `items` (b,) and of all items: (b, n_items)."""
        unit = nn.functional.normalize(self.items.weight, dim=1)
        return unit[items] @ unit.T


def distinct_rows(table: nn.Embedding, rows: Tensor) -> Tensor:
    """The vectors of rows (n,) of which none comes twice, so that their gradients need no adding up."""
    if table.sparse or table._forward_hooks or not torch.is_grad_enabled():
        vectors: Tensor = table(rows)
        return vectors
    found: Tensor = _DistinctRows.apply(table.weight, rows)  # type: ignore[no-untyped-call]
    return found


class _DistinctRows(torch.autograd.Function):
    """A look-up whose gradient is copied into place; that can be differentiated again."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = weight.shape
        return weight.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.shape).index_copy_(0, rows, gradient.contiguous()), None


def mean_norm(user: Tensor, item: Tensor) -> Tensor:
    """The mean of |p|^2 + |q|^2 over all pairs of vectors p (b, d) and q (b, k, d), or (k, d) for all."""
    return user.square().sum(-1).mean() + item.square().sum(-1).mean()


def is_range(codes: Tensor) -> bool:
    """Whether these are the numbers 0, 1, 2 ... in order."""
    return bool(codes[0] == 0) and bool((codes[1:] - codes[:-1] == 1).all())


def _open(table: nn.Embedding) -> bool:
    """Whether a table may be read past its look-ups: dense gradients, and nobody listening."""
    return not table.sparse and not table._forward_hooks
