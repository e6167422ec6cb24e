"""The library: all members in two tables, trained together on the same batches."""

import torch
from torch import Tensor, nn

from towpath.kernels.heads import (
    BlockTask,
    HeadTask,
    MemberTask,
    Tables,
    head_gradients,
    head_logits,
    vectors_and_biases,
)
from towpath.models.pair_tables import table_of
from towpath.models.scorer import Sizes
from towpath.rng import Rng

_START = 0.1  # standard deviation of the vectors' random start


class Library(nn.Module):
    """M members with vectors of length d and H heads each; one look-up fetches those of all members."""

    weights: Tensor  # (H, M) how much each head counts in the deployed sum

    def __init__(self, sizes: Sizes, members: MemberTask, dim: int) -> None:
        super().__init__()
        self.task = members
        heads, count = members.prices.shape
        width = count * (dim + heads)
        self.users, self.items = table_of(sizes.users, width), table_of(sizes.items, width)
        self.bias = nn.Parameter(torch.zeros(heads, count))
        self.register_buffer("weights", torch.zeros(heads, count))
        self._size = count * dim

    @torch.no_grad()
    def start(self, rng: Rng) -> None:
        """Random vectors, and biases of zero; the weights stay."""
        self.bias.zero_()
        for name, table in (("users", self.users), ("items", self.items)):
            table.weight.normal_(0, _START, generator=rng.torch("library", name))
            table.weight[:, self._size :] = 0

    @torch.no_grad()
    def gradients(self, task: HeadTask, block: BlockTask | None = None) -> dict[Tensor, Tensor]:
        """What reaches each parameter from a batch."""
        sparse = self.users.sparse, self.items.sparse
        found = head_gradients(self.tables, task, self.task, sparse, block)
        return dict(zip(self.tables, found, strict=True))

    @torch.no_grad()
    def logits(self, users: Tensor, items: Tensor) -> Tensor:
        """Logits (n, H, M) of all heads for the pairs users (n,), items (n,)."""
        found, _ = head_logits(self.tables, users, items[:, None])
        return found[:, 0]

    @torch.no_grad()
    def user_biases(self, users: Tensor) -> Tensor:
        """The part of those logits that is the user's alone: (n, H, M)."""
        return vectors_and_biases(self.users.weight[users], self.bias)[1]

    @property
    def tables(self) -> Tables:
        """The rows of users and items, and the biases."""
        return Tables(self.users.weight, self.items.weight, self.bias)
