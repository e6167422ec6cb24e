"""Matrix factorisation whose tables are spread over the processes that train it."""

import torch
import torch.distributed as dist
from torch import Tensor, nn

from towpath.data.interactions import Interactions
from towpath.kernels.inner_products import inner_products, usable
from towpath.mapped import empty_array
from towpath.models.factorization import Factorization, FactorizationSettings, scores_of_rows
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.models.sharded_table import ShardedTable
from towpath.rng import Rng


class ShardedFactorization(Scorer):
    """The same scores as Factorization from the same start; every process calls it at the same time."""

    settings_type = FactorizationSettings
    settings: FactorizationSettings

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        width = self.settings.embedding_dim + 1
        self.users, self.items = ShardedTable(sizes.users, width), ShardedTable(sizes.items, width)
        self.bias = nn.Parameter(torch.zeros(()))

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Draw the vectors; biases start at zero."""
        for name, table in (("users", self.users), ("items", self.items)):
            table.draw(self.settings.init_std, rng.torch("initialise", name))

    def rates(self) -> dict[str, float]:
        """As those of Factorization."""
        return Factorization.rates(self)  # type: ignore[arg-type]  # it asks for the settings alone

    def score(self, context: Context, items: Tensor) -> Tensor:
        """Inner products plus biases."""
        if len(items) != len(context.users):
            return self._score_shared(context, items[0])
        return self.score_with_norm(context, items)[0]

    def score_with_norm(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and the mean of |p_u|^2 + |q_i|^2, from the rows that these pairs need."""
        users, who = torch.unique(context.users, return_inverse=True)
        rows, what = torch.unique(items, return_inverse=True)
        P, Q = self.users(users), self.items(rows)
        if usable(P, Q):
            return inner_products(P, Q, who, what, self.bias)
        return scores_of_rows(P[who], Q[what], self.bias)

    @torch.no_grad()
    def _score_shared(self, context: Context, items: Tensor) -> Tensor:
        """Scores of the same items (k,), which ascend: each process scores its own for all users.

        All processes must ask for the same users.
        """
        users, who = torch.unique(context.users, return_inverse=True)
        user, table = self.users(users)[who], self.items
        counts = table.counts(items).tolist()
        begin = sum(counts[: table.rank])
        item = table.weight[items[begin : begin + counts[table.rank]] - table.begin]
        # Gathered with the items in front, so that those of a process lie together.
        own = item[:, :-1] @ user[:, :-1].T + item[:, -1:] + (user[:, -1] + self.bias)
        padded = own.new_zeros(max(counts), len(user))
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)]).T.contiguous()

    def gathered(self) -> Factorization | None:
        """The whole model, for the first process; the others help and get None.

        Its tables lie in temporary files if they are large, of which memory holds what is being used.
        """
        first = self.users.rank == 0
        whole = Factorization(self.settings, Sizes(0, 0)) if first else None
        if whole is not None:
            whole.sizes = self.sizes
        for name in ("users", "items"):
            table: ShardedTable = getattr(self, name)
            shape = (table.rows, table.weight.shape[1])
            rows = torch.from_numpy(empty_array(shape, "float32")) if first else None
            table.gather(rows)
            if whole is not None:
                setattr(whole, name, nn.Embedding(*shape, sparse=table.sparse, _weight=rows))
        if whole is not None:
            whole.bias.data.copy_(self.bias)
            whole.remarks = self.remarks
            whole.eval()
        return whole
