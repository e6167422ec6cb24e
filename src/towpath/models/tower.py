"""The layers of a perceptron above its first one, which is a sum of parts of the user and of the item."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from towpath.kernels.inner_products import usable
from towpath.kernels.pair_layers import Layer, Parts, catalogue_scores, pair_scores
from towpath.rng import Rng


class Tower(nn.Module):
    """score = <h, a_n> + b,   a_1 = relu(x),   a_l = relu(W_l a_(l-1) + c_l)

    x is what the first layer gives: the part of a user and the part of an item are computed once each, not
    once for every pair, and added here.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(m, n) for m, n in pairwise(widths))
        self.head = nn.Linear(widths[-1], 1)

    def initialise(self, rng: Rng) -> None:
        """Draw the layers and the output layer."""
        for depth, layer in enumerate(self.layers, start=1):
            assert isinstance(layer, nn.Linear)
            draw_layer(layer, rng, depth)
        draw_head(self.head, rng)

    def forward(self, above_first: Tensor) -> Tensor:
        """Scores (b, k) from what the first layer gives (b, k, h), which is written over."""
        activation = above_first.relu_()
        for layer in self.layers:
            activation = layer(activation).relu_()
        score: Tensor = self.head(activation)[..., 0]
        return score

    def squared_weights(self) -> Tensor:
        """Sum of the squares of all weights, without biases: a number."""
        return torch.stack([p.square().sum() for p in self.parameters() if p.dim() == 2]).sum()

    def of_parts(
        self, user: Tensor, item: Tensor, places: Tensor | None = None, who: Tensor | None = None
    ) -> Tensor:
        """Scores (b, k) of users' parts (b, h), or of those at who (b,) of any (m, h), with items' parts.

        item: (n, h), of which every user gets those at places (b, k), or all where there are none, k = n;
        or (b, k, h), each pair's own.
        """
        if item.dim() == 2 and places is not None and usable(user, item):
            who = torch.arange(len(user)) if who is None else who
            return self.of_shared_parts(Parts(user, item, None, who, places))[0]
        user = user if who is None else user[who]
        if item.dim() == 2 and places is None and not torch.is_grad_enabled():
            return catalogue_scores(user, item, self._stack())
        if item.dim() == 2 and usable(user, item):
            every = torch.arange(len(item)).expand(len(user), -1)
            return self.of_parts(user, item, every)
        return self._of_pairs(user[:, None] + (item if places is None else embedding(places, item)))

    def of_shared_parts(self, parts: Parts) -> tuple[Tensor, Tensor]:
        """Scores (b, k) and norm of parts that several pairs may have in common, where kernels are usable."""
        return pair_scores(parts, self._stack())

    def _of_pairs(self, above_first: Tensor) -> Tensor:
        scores: Tensor = self(above_first)
        return scores

    def _stack(self) -> list[Layer]:
        """All layers, the output layer last."""
        return [Layer(layer.weight, layer.bias) for layer in (*self.layers, self.head)]


def draw_layer(layer: nn.Linear, rng: Rng, depth: int) -> None:
    """Glorot's uniform start, biases zero: bound sqrt(6 / (fan in + fan out))."""
    bound = (6 / (layer.in_features + layer.out_features)) ** 0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=rng.torch("initialise", "layer", depth))
        layer.bias.zero_()


def draw_head(head: nn.Linear, rng: Rng) -> None:
    """LeCun's uniform start, bias zero: bound sqrt(3 / fan in)."""
    bound = (3 / head.in_features) ** 0.5
    with torch.no_grad():
        head.weight.uniform_(-bound, bound, generator=rng.torch("initialise", "head"))
        head.bias.zero_()
