"""Neural collaborative filtering (He et al. 2017): GMF, MLP, and NeuMF, which is both."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from pydantic import Field
from torch import Tensor, nn

from towpath.data.interactions import Interactions
from towpath.models.item_table import ItemRate, ItemStart, start_vectors
from towpath.models.pair_tables import PairTables
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.rng import Rng

# Pairs that pass through the layers at once: their activations stay in cache, and memory is bounded.
_PAIRS_AT_ONCE = 8192


class GmfSettings(Settings):
    """Settings of generalised matrix factorisation."""

    embedding_dim: int = Field(32, ge=1, description="Length of the user and item vectors.")
    init_std: float = Field(0.1, gt=0, description="Standard deviation of the vectors' random start.")
    item_start: ItemStart = "random"
    item_rate: ItemRate = 1.0


class MlpSettings(GmfSettings):
    """Settings of a perceptron on user and item vectors."""

    hidden: tuple[int, ...] = Field(
        (32, 16, 8), min_length=1, description="Widths of the hidden layers, from the vectors upwards."
    )


class NcfSettings(MlpSettings):
    """Settings of NeuMF."""

    pretrain_epochs: int = Field(
        0,
        ge=0,
        description="Epochs for which the two halves are trained alone before they are put together; w and g "
        "of a game are never pre-trained.",
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
        _draw_head(self.head, rng)

    def rates(self) -> dict[str, float]:
        """The item vectors may have a rate of their own."""
        return {"tables.items.weight": self.settings.item_rate}

    def score(self, context: Context, items: Tensor) -> Tensor:
        """Inner products under the weights h."""
        return self.score_with_norms(context, items)[0]

    def score_with_norms(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and |p_u|^2 + |q_i|^2 of each pair."""
        user, item = self.tables(context, items)
        weighted = user * self.head.weight
        product = weighted @ item.T if item.dim() == 2 else torch.einsum("bd,bkd->bk", weighted, item)
        return product + self.head.bias, self.tables.norms(user, item)

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
        widths = (2 * self.settings.embedding_dim, *self.settings.hidden)
        self.tables = PairTables(sizes, self.settings.embedding_dim)
        self.layers = nn.ModuleList(nn.Linear(m, n) for m, n in pairwise(widths))
        self.head = nn.Linear(widths[-1], 1)

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Draw the vectors (or take those of the items from a table) and the layers."""
        self.remarks = self.tables.initialise(train, rng, self.settings.item_start, self.settings.init_std)
        for depth, layer in enumerate(self._linear()):
            _draw_layer(layer, rng, depth)
        _draw_head(self.head, rng)

    def rates(self) -> dict[str, float]:
        """The item vectors may have a rate of their own."""
        return {"tables.items.weight": self.settings.item_rate}

    def score(self, context: Context, items: Tensor) -> Tensor:
        """What comes out of the layers."""
        return self.score_with_norms(context, items)[0]

    def score_with_norms(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and |p_u|^2 + |q_i|^2 of each pair."""
        user, item = self.tables(context, items)
        first, dim = self._linear()[0], self.settings.embedding_dim
        weight = first.weight  # once: a critic's layer under a spectral norm computes it anew every time
        of_user = nn.functional.linear(user, weight[:, :dim], first.bias)
        of_item = nn.functional.linear(item, weight[:, dim:])
        if item.dim() == 2:
            return self._for_all(of_user, of_item), self.tables.norms(user, item)
        return self._upwards(of_user[:, None] + of_item), self.tables.norms(user, item)

    def _for_all(self, user: Tensor, item: Tensor) -> Tensor:
        """Scores (b, k) of the users' parts (b, h) with the same items' parts (k, h), block by block."""
        columns = torch.split(item, _PAIRS_AT_ONCE)
        rows = torch.split(user, max(1, _PAIRS_AT_ONCE // max(1, len(item))))
        return torch.cat([torch.cat([self._upwards(u[:, None] + i) for i in columns], dim=1) for u in rows])

    def _upwards(self, above_first: Tensor) -> Tensor:
        """Scores (b, k) from what the first layer gives (b, k, h), which is written over."""
        activation = above_first.relu_()
        for layer in self._linear()[1:]:
            activation = layer(activation).relu_()
        return self.head(activation)[..., 0]

    def _linear(self) -> list[nn.Linear]:
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

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
            for half in (self.gmf, self.mlp):
                half.head.weight.mul_(0.5)
                half.head.bias.mul_(0.5)

    def score(self, context: Context, items: Tensor) -> Tensor:
        """The sum of both halves."""
        return self.gmf.score(context, items) + self.mlp.score(context, items)

    def score_with_norms(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and the squared lengths of all four vectors of each pair."""
        (gmf, gmf_norms), (mlp, mlp_norms) = (
            half.score_with_norms(context, items) for half in (self.gmf, self.mlp)
        )
        return gmf + mlp, gmf_norms + mlp_norms

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """The vectors of both halves end to end."""
        return torch.cat([half.pair_features(context, items) for half in (self.gmf, self.mlp)], dim=2)

    def item_similarity(self, items: Tensor) -> Tensor:
        """Mean of both halves' cosines."""
        return (self.gmf.item_similarity(items) + self.mlp.item_similarity(items)) / 2


def _draw_layer(layer: nn.Linear, rng: Rng, depth: int) -> None:
    """Glorot's uniform start, biases zero: bound sqrt(6 / (fan in + fan out))."""
    bound = (6 / (layer.in_features + layer.out_features)) ** 0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=rng.torch("initialise", "layer", depth))
        layer.bias.zero_()


def _draw_head(head: nn.Linear, rng: Rng) -> None:
    """LeCun's uniform start, bias zero: bound sqrt(3 / fan in)."""
    bound = (3 / head.in_features) ** 0.5
    with torch.no_grad():
        head.weight.uniform_(-bound, bound, generator=rng.torch("initialise", "head"))
        head.bias.zero_()
