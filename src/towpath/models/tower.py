"""The layers of a perceptron above its first one, which is a sum of parts of the user and of the item."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from towpath.rng import Rng

# Pairs that pass through the layers at once: their activations stay in cache, and memory is bounded.
_PAIRS_AT_ONCE = 8192


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

    def for_all(self, user: Tensor, item: Tensor) -> Tensor:
        """Scores (b, k) of the users' parts (b, h) with the same items' parts (k, h), block by block."""
        columns = torch.split(item, _PAIRS_AT_ONCE)
        rows = torch.split(user, max(1, _PAIRS_AT_ONCE // max(1, len(item))))
        return torch.cat([torch.cat([self(u[:, None] + i) for i in columns], dim=1) for u in rows])

    def of_parts(self, user: Tensor, item: Tensor) -> Tensor:
        """Scores (b, k) of the users' parts (b, h) with items' parts (b, k, h), or (k, h) shared by all."""
        score: Tensor = self.for_all(user, item) if item.dim() == 2 else self(user[:, None] + item)
        return score


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
