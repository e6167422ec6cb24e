"""Matrix factorisation with biases."""

import torch
from pydantic import Field
from torch import Tensor, nn

from towpath.data.interactions import Interactions
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.rng import Rng

# Above this many rows in all, touching only the rows of a batch is cheaper than stepping whole tables.
_SPARSE_FROM_ROWS = 100_000


class FactorizationSettings(Settings):
    """Settings of matrix factorisation."""

    embedding_dim: int = Field(32, ge=1, description="Length of the user and item vectors.")
    init_std: float = Field(0.1, gt=0, description="Standard deviation of the vectors' random start.")


class Factorization(Scorer):
    """score(u, i) = <p_u, q_i> + b_u + b_i + b

    b_u does not change a ranking, but it makes scores comparable over users, which weights and critics need.
    """

    settings_type = FactorizationSettings
    settings: FactorizationSettings

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        width = self.settings.embedding_dim + 1  # the bias rides in the last column: one gather fetches both
        sparse = sizes.users + sizes.items > _SPARSE_FROM_ROWS
        self.users = nn.Embedding(sizes.users, width, sparse=sparse)
        self.items = nn.Embedding(sizes.items, width, sparse=sparse)
        self.bias = nn.Parameter(torch.zeros(()))

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Draw the vectors; biases start at zero."""
        with torch.no_grad():
            for name, table in (("users", self.users), ("items", self.items)):
                table.weight.normal_(0, self.settings.init_std, generator=rng.torch("initialise", name))
                table.weight[:, -1] = 0
            self.bias.zero_()

    def score(self, context: Context, items: Tensor) -> Tensor:
        """Inner products plus biases; one matrix product when everyone is scored on the same items."""
        user, item = self.users(context.users), self.items(items)  # (b, d + 1), (b or 1, k, d + 1)
        if len(items) == 1 and len(user) > 1:
            products = user[:, :-1] @ item[0, :, :-1].T
        else:
            products = torch.einsum("bd,bkd->bk", user[:, :-1], item[:, :, :-1])
        return products + user[:, -1:] + item[:, :, -1] + self.bias

    def squared_norms(self, context: Context, items: Tensor) -> Tensor:
        """|p_u|^2 + |q_i|^2 of each scored pair."""
        user, item = self.users(context.users), self.items(items)
        return user[:, :-1].square().sum(1, keepdim=True) + item[:, :, :-1].square().sum(2)

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """The vectors of user and item end to end."""
        user, item = self.users(context.users)[:, None, :-1], self.items(items)[:, :, :-1]
        shape = (len(context.users), items.shape[1], -1)
        return torch.cat([user.expand(shape), item.expand(shape)], dim=2)

    def item_similarity(self, items: Tensor) -> Tensor:
        """Cosine of the item vectors."""
        unit = nn.functional.normalize(self.items.weight[:, :-1], dim=1)
        return unit[items] @ unit.T
