"""Neural collaborative filtering (He et al. 2017): GMF, MLP, and NeuMF, which is both."""

from collections.abc import Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from towpath.data.interactions import Interactions
from towpath.kernels.inner_products import inner_products
from towpath.kernels.pair_layers import Parts
from towpath.models.item_table import ItemRate, ItemStart, start_vectors
from towpath.models.pair_tables import PairTables, mean_norm
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.models.tower import Tower, draw_head, draw_layer
from towpath.rng import Rng


class GmfSettings(Settings):
    """Settings of generalised matrix factorisation."""

    embedding_dim: int = Field(32, ge=1, description="Length of the user and item vectors.")
    init_std: float = Field(0.1, gt=0, description="Standard deviation of the vectors' random start.")
    item_start: ItemStart = "random"
    item_rate: ItemRate = 1.0


class MlpSettings(GmfSettings):
    """Settings of a perceptron on user and item vectors."""

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (32, 16, 8), min_length=1, description="Widths of the hidden layers, from the vectors upwards."
    )
    layer_charge: float = Field(
        0.3,
        ge=0,
        description="Penalty on the squared weights above the first layer, as a share of l2.",
    )


class NcfSettings(MlpSettings):
    """Settings of NeuMF."""

    pretrain_epochs: int = Field(
        20,
        ge=0,
        description="Epochs for which the two halves are trained separately first; 0: none. w and g of "
        "a game are never pre-trained.",
    )


class Gmf(Scorer):
    """score(u, i) = <h, p_u * q_i> + b"""

    settings_type = GmfSettings
    settings: GmfSettings

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        self.tables = PairTables(sizes, self.settings.embedding_dim)
        self.head = nn.Linear(self.settings.embedding_dim, 1)

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Draw the vectors (or take those of the items from a table) and the output layer."""
        self.remarks = self.tables.initialise(train, rng, self.settings.item_start, self.settings.init_std)
        draw_head(self.head, rng)

    def rates(self) -> dict[str, float]:
        """The item vectors may have a rate of their own."""
        return {"tables.items.weight": self.settings.item_rate}

    def score(self, context: Context, items: Tensor) -> Tensor:
        """Inner products under the weights h."""
        return self.score_with_norm(context, items)[0]

    def score_with_norm(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and the mean of |h * p_u|^2 + |q_i|^2.

        The penalty is on what is multiplied: one on p_u alone would only make h grow.
        """
        if len(items) > 1 and self.tables.takes_kernels():
            once = self.tables.users_once(context.users)
            assert once.places is not None
            tables = _with_zeros(once.vectors * self.head.weight), _with_zeros(self.tables.items.weight)
            return inner_products(*tables, once.places, items, self.head.bias)
        user, item = self.tables(context, items)
        user = user * self.head.weight
        product = user @ item.T if item.dim() == 2 else torch.einsum("bd,bkd->bk", user, item)
        return product + self.head.bias, mean_norm(user, item)

    def factors(self, context: Context) -> tuple[Tensor, Tensor]:
        """(h * p_u, b) and (q_i, 1), whose inner products are the scores."""
        user, item = self.tables.users(context.users) * self.head.weight, self.tables.items.weight
        bias = self.head.bias.expand(len(user), 1)
        return torch.cat([user, bias], dim=1), nn.functional.pad(item, (0, 1), value=1.0)

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """The vectors of user and item end to end."""
        return self.tables.pair_features(context, items)

    def item_similarity(self, items: Tensor) -> Tensor:
        """Cosine of the item vectors."""
        return self.tables.item_similarity(items)


class Mlp(Scorer):
    """score(u, i) = <h, a_n> + b,   a_1 = relu(W_u p_u + W_i q_i + c_1),   a_l = relu(W_l a_(l-1) + c_l)

    W_u and W_i are the two halves of one layer over both vectors end to end. Written apart, the part of a
    user and the part of an item are computed once each, not once for every pair.
    """

    settings_type = MlpSettings
    settings: MlpSettings

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        self.tables = PairTables(sizes, self.settings.embedding_dim)
        self.first = nn.Linear(2 * self.settings.embedding_dim, self.settings.hidden[0])
        self.tower = Tower(self.settings.hidden)

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Draw the vectors (or take those of the items from a table) and the layers."""
        self.remarks = self.tables.initialise(train, rng, self.settings.item_start, self.settings.init_std)
        draw_layer(self.first, rng, 0)
        self.tower.initialise(rng)

    def rates(self) -> dict[str, float]:
        """The item vectors may have a rate of their own."""
        return {"tables.items.weight": self.settings.item_rate}

    def score(self, context: Context, items: Tensor) -> Tensor:
        """What comes out of the layers."""
        return self.score_with_norm(context, items)[0]

    def score_with_norm(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and the mean of |W_u p_u|^2 + |W_i q_i|^2 + layer_charge * (|W_2|^2 + ... + |h|^2).

        The penalty is on the products: one on the vectors alone would only make the layers grow.
        """
        users, once = self.tables.users_once(context.users), self.tables.items_once(items)
        of_user, of_item = self.first.weight.chunk(2, dim=1)  # sides have vectors of the same length
        user = users.vectors @ of_user.T
        layers = self.settings.layer_charge * self.tower.squared_weights()
        if once is None:  # somebody wants to hear of every pair
            item = self.tables.items(items) @ of_item.T
            return self.tower.of_parts(user + self.first.bias, item), mean_norm(user, item) + layers
        item = once.vectors @ of_item.T
        if users.places is not None and once.places is not None:
            shares = users.shares, once.shares
            parts = Parts(user, item, self.first.bias, users.places, once.places, *shares)
            scores, norm = self.tower.of_shared_parts(parts)
            return scores, norm + layers
        scores = self.tower.of_parts(user + self.first.bias, item, once.places, users.places)
        norm = users.mean(user.square().sum(1)) + once.mean(item.square().sum(1))
        return scores, norm + layers

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """The vectors of user and item end to end."""
        return self.tables.pair_features(context, items)

    def item_similarity(self, items: Tensor) -> Tensor:
        """Cosine of the item vectors."""
        return self.tables.item_similarity(items)


class Ncf(Scorer):
    """NeuMF: a GMF and an MLP with tables of their own under one output layer.

        score(u, i) = <h, (p_u * q_i, a_n)> + b

    An output layer over both vectors end to end is the sum of one over each, so NeuMF is the sum of the two
    models' scores, and both halves of its output layer are trained.
    """

    settings_type = NcfSettings
    settings: NcfSettings

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        own = self.settings.model_dump() | {"item_start": "random"}  # one start for both, set here
        self.gmf = Gmf(GmfSettings(**{key: own[key] for key in GmfSettings.model_fields}), sizes)
        self.mlp = Mlp(MlpSettings(**{key: own[key] for key in MlpSettings.model_fields}), sizes)

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Draw both halves; item vectors from a table are the same in both."""
        for name, half in (("gmf", self.gmf), ("mlp", self.mlp)):
            half.initialise(train, rng.child("initialise", name))
        if self.settings.item_start != "random":
            dim, std = self.settings.embedding_dim, self.settings.init_std
            start = start_vectors(train, rng, dim, self.settings.item_start, std)
            self.remarks = start.remarks
            with torch.no_grad():
                self.gmf.tables.items.weight.copy_(start.vectors)
                self.mlp.tables.items.weight.copy_(start.vectors)

    def to_pretrain(self) -> tuple[int, Sequence[Scorer]]:
        """Both halves, if asked for."""
        return self.settings.pretrain_epochs, (self.gmf, self.mlp)

    def pretrained(self) -> None:
        """Halve both output layers: each half alone predicts, so together they would say everything twice."""
        with torch.no_grad():
            for head in (self.gmf.head, self.mlp.tower.head):
                head.weight.mul_(0.5)
                head.bias.mul_(0.5)

    def score(self, context: Context, items: Tensor) -> Tensor:
        """The sum of both halves."""
        return self.gmf.score(context, items) + self.mlp.score(context, items)

    def score_with_norm(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and the L2 penalty of both halves."""
        (gmf, gmf_norm), (mlp, mlp_norm) = (
            half.score_with_norm(context, items) for half in (self.gmf, self.mlp)
        )
        return gmf + mlp, gmf_norm + mlp_norm

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """The vectors of both halves end to end."""
        return torch.cat([half.pair_features(context, items) for half in (self.gmf, self.mlp)], dim=2)

    def item_similarity(self, items: Tensor) -> Tensor:
        """Mean of both halves' cosines."""
        return (self.gmf.item_similarity(items) + self.mlp.item_similarity(items)) / 2


def _with_zeros(table: Tensor) -> Tensor:
    """The table with a last column of zeros, where the kernels look for biases."""
    return nn.functional.pad(table, (0, 1))
