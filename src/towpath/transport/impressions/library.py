"""The library: all members in two tables, trained together on the same batches."""

import torch
from torch import Tensor, nn

from towpath.kernels.heads import HeadTask, MemberTask, Tables, head_gradients, head_logits
from towpath.models.pair_tables import table_of
from towpath.models.scorer import Sizes
from towpath.rng import Rng
from towpath.transport.impressions.members import HEADS

_START = 0.1  # standard deviation of the vectors' random start


class Library(nn.Module):
    """M members with vectors of length d and H heads each; one look-up fetches those of all members."""

    def __init__(self, sizes: Sizes, members: MemberTask, dim: int, rng: Rng) -> None:
        super().__init__()
        self.task, self._dim = members, dim
        count = len(members.l2)
        self.users = table_of(sizes.users, count * (dim + HEADS))
        self.items = table_of(sizes.items, count * (dim + HEADS))
        self.bias = nn.Parameter(torch.zeros(count, HEADS))
        with torch.no_grad():
            for name, table in (("users", self.users), ("items", self.items)):
                table.weight.normal_(0, _START, generator=rng.torch("library", name))
                table.weight.view(-1, count, dim + HEADS)[..., dim:] = 0

    @torch.no_grad()
    def gradients(self, task: HeadTask) -> dict[Tensor, Tensor]:
        """What reaches each parameter from a batch."""
        tables = Tables(self.users.weight, self.items.weight, self.bias)
        found = head_gradients(tables, task, self.task, (self.users.sparse, self.items.sparse))
        return dict(zip(tables, found, strict=True))

    @torch.no_grad()
    def logits(self, users: Tensor, items: Tensor, members: slice) -> Tensor:
        """Logits (n, m, H) of the heads of these members for the pairs users (n,), items (n,)."""
        found, _ = head_logits(self.tables(members), users, items[:, None])
        return found[:, 0]

    @torch.no_grad()
    def user_biases(self, users: Tensor, members: slice) -> Tensor:
        """The part of those logits that is the user's alone: (n, m, H)."""
        rows = self.tables(members).users[users]
        return rows.view(len(users), -1, self._dim + HEADS)[..., self._dim :]

    def tables(self, members: slice) -> Tables:
        """The rows of users and items, and the biases, of some members alone."""
        width = self._dim + HEADS
        columns = slice(members.start * width, members.stop * width)
        return Tables(self.users.weight[:, columns], self.items.weight[:, columns], self.bias[members])
