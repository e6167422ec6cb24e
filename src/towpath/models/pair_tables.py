"""A vector for every user and every item, and what neural models do with them first."""

import torch
from torch import Tensor, nn

from towpath.data.interactions import Interactions
from towpath.kernels.inner_products import usable
from towpath.models.item_table import start_vectors
from towpath.models.scorer import SPARSE_FROM_ROWS, Context, Sizes
from towpath.rng import Rng


class PairTables(nn.Module):
    """Vectors p_u of users and q_i of items, of the same length."""

    def __init__(self, sizes: Sizes, width: int) -> None:
        super().__init__()
        sparse = sizes.users + sizes.items > SPARSE_FROM_ROWS
        self.users = nn.Embedding(sizes.users, width, sparse=sparse)
        self.items = nn.Embedding(sizes.items, width, sparse=sparse)

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
        return self._open() and usable(self.users.weight, self.items.weight)

    def whole_table_is_less(self, items: Tensor) -> bool:
        """Whether all items are fewer than these, and may be taken at once."""
        return self._open() and items.numel() > self.items.num_embeddings

    def _open(self) -> bool:
        """Whether tables may be read past their look-ups: dense gradients, and nobody listening."""
        listened_to = self.users._forward_hooks or self.items._forward_hooks
        return not self.users.sparse and not listened_to

    @staticmethod
    def norms(user: Tensor, item: Tensor) -> Tensor:
        """|p|^2 + |q|^2 of each pair (b, k) of vectors p (b, d) and q (b, k, d), or (k, d) for all."""
        return user.square().sum(1, keepdim=True) + item.square().sum(-1)

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """The vectors of user and item end to end: (b, k, 2 d)."""
        user, item = self.users(context.users)[:, None], self.items(items)
        shape = (len(context.users), items.shape[1], -1)
        return torch.cat([user.expand(shape), item.expand(shape)], dim=2)

    def item_similarity(self, items: Tensor) -> Tensor:
        """Cosine of the item vectors of `items` (b,) and of all items: (b, n_items)."""
        unit = nn.functional.normalize(self.items.weight, dim=1)
        return unit[items] @ unit.T
