"""Matrix factorisation with biases."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from towpath.data.interactions import Histories, Interactions
from towpath.kernels.available import AVAILABLE
from towpath.kernels.inner_products import gradients, inner_products, usable
from towpath.models.closed_start import ClosedStart, start_from_data, start_from_ease
from towpath.models.fold_in import QuadraticLoss, RidgeFoldIn
from towpath.models.item_table import ItemRate, ItemStart, start_vectors
from towpath.models.pair_tables import is_range, mean_norm, table_of
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.rng import Rng

_SLOW = (
    "numba is not installed, so this factorisation is trained by plain torch, several times slower; "
    "pip install 'towpath[fast]' adds the compiled loops."
)
# The rate of the common bias as a multiple of the others'; 10 to 100 are alike.
_BIAS_RATE = 30.0


class FactorizationSettings(Settings):
    """Settings of matrix factorisation."""

    embedding_dim: int = Field(32, ge=1, description="Length of the user and item vectors.")
    start: Literal["random", "svd", "ease"] = Field(
        "random",
        description="Where training starts: `random` vectors, or the best low-rank approximation of the "
        "data (`svd`) or of EASE (`ease`). Both are good before the first epoch, so lower "
        "learning_rate.",
    )
    init_std: float = Field(0.1, gt=0, description="Standard deviation of the vectors' random start.")
    start_shrink: float = Field(
        0.5,
        ge=0,
        le=1,
        description="By how much start=svd lowers all singular values, as a share of the smallest, like "
        "a ridge penalty; 0: not at all.",
    )
    start_ridge: float = Field(
        800.0, gt=0, description="Ridge penalty of the EASE that start=ease approximates."
    )
    item_start: ItemStart = "random"
    item_rate: ItemRate = 1.0

    @model_validator(mode="after")
    def _one_start(self) -> "FactorizationSettings":
        if self.start != "random" and self.item_start != "random":
            raise ValueError(
                f"start={self.start} and item_start={self.item_start} both say where items start"
            )
        return self


class Factorization(Scorer):
    """score(u, i) = <p_u, q_i> + b_u + b_i + b

    b_u does not change a ranking, but it makes scores comparable over users, which weights and critics need.
    """

    settings_type = FactorizationSettings
    settings: FactorizationSettings
    # A pair costs little here, and the closed forms it competes with learn from all of them; chosen by
    # validation on seven datasets (benchmarks/defaults.py).
    suited_training: ClassVar[Mapping[str, Any]] = {"negatives": 20, "l2": 1.5e-3}

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        width = self.settings.embedding_dim + 1  # the bias rides in the last column: one gather fetches both
        self.users, self.items = table_of(sizes.users, width), table_of(sizes.items, width)
        self.bias = nn.Parameter(torch.zeros(()))

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Draw the vectors, or take them in closed form or from a table; biases of rows start at zero."""
        with torch.no_grad():
            for name, table in (("users", self.users), ("items", self.items)):
                table.weight.normal_(0, self.settings.init_std, generator=rng.torch("initialise", name))
                table.weight[:, -1] = 0
            self.bias.zero_()
            if self.settings.start != "random":
                self._take(self._closed_start(train, rng))
            if self.settings.item_start != "random":
                dim, std = self.settings.embedding_dim, self.settings.init_std
                start = start_vectors(train, rng, dim, self.settings.item_start, std)
                self.items.weight[:, :-1] = start.vectors
                self.remarks = start.remarks
        if not AVAILABLE:
            self.remarks = (*self.remarks, _SLOW)

    def rates(self) -> dict[str, float]:
        """Item vectors may have a rate of their own; that of the bias that all pairs share is high.

        With many negatives it has far to fall, and until it is there the vectors learn little else.
        """
        return {"items.weight": self.settings.item_rate, "bias": _BIAS_RATE}

    def _closed_start(self, train: Interactions, rng: Rng) -> ClosedStart:
        if self.settings.start == "svd":
            return start_from_data(train, self.settings.embedding_dim, self.settings.start_shrink, rng)
        return start_from_ease(train, self.settings.embedding_dim, self.settings.start_ridge, rng)

    def _take(self, start: ClosedStart) -> None:
        self.users.weight[:, :-1] = torch.from_numpy(start.users)
        self.items.weight[:, :-1] = torch.from_numpy(start.items)
        self.bias.fill_(start.bias)

    def score(self, context: Context, items: Tensor) -> Tensor:
        """Inner products plus biases."""
        if len(items) != len(context.users) and not torch.is_grad_enabled():
            return self._score_in_place(self.users(context.users), self._rows_of(items[0]))
        return self.score_with_norm(context, items)[0]

    def score_with_norm(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and the mean of |p_u|^2 + |q_i|^2; one matrix product when all share the same items."""
        if len(items) != len(context.users):
            return self._score_shared(self.users(context.users), self.items(items[0]))
        if self._takes_kernels():
            tables, sparse = (self.users.weight, self.items.weight), (self.users.sparse, self.items.sparse)
            return inner_products(*tables, context.users, items, self.bias, sparse=sparse)
        return scores_of_rows(self.users(context.users), self.items(items), self.bias)

    def has_manual_backward(self, context: Context, items: Tensor) -> bool:
        """Where the fused kernels do it."""
        return len(items) == len(context.users) and self._takes_kernels()

    def gradients(
        self, context: Context, items: Tensor, by_score: Tensor, by_norm: float
    ) -> dict[Tensor, Tensor]:
        """Those of both tables and of the bias, by the fused kernels."""
        found = gradients(
            self.users.weight,
            self.items.weight,
            context.users,
            items,
            by_score,
            by_norm,
            sparse=(self.users.sparse, self.items.sparse),
        )
        parameters = (self.users.weight, self.items.weight, self.bias)
        return dict(zip(parameters, found, strict=True))

    def _score_shared(self, user: Tensor, item: Tensor) -> tuple[Tensor, Tensor]:
        """The same for users (b, d + 1) who share the items (k, d + 1)."""
        scores = user[:, :-1] @ item[:, :-1].T + user[:, -1:] + (item[:, -1] + self.bias)
        return scores, mean_norm(user[:, :-1], item[:, :-1])

    def _score_in_place(self, user: Tensor, item: Tensor) -> Tensor:
        """The scores of the same, in one block of memory, which may be as large as users times items."""
        return (user[:, :-1] @ item[:, :-1].T).add_(user[:, -1:]).add_(item[:, -1] + self.bias)

    def _rows_of(self, items: Tensor) -> Tensor:
        """The vectors of these items (k,); the table itself, not a copy of it, if they are all in order."""
        table = self.items.weight
        if len(items) == len(table) and not self.items._forward_hooks and is_range(items):
            return table
        return self.items(items)

    def _takes_kernels(self) -> bool:
        """Whether the fused kernels can do it: nobody is listening to the look-ups."""
        listened_to = self.users._forward_hooks or self.items._forward_hooks
        return not listened_to and usable(self.users.weight, self.items.weight)

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """The vectors of user and item end to end."""
        user, item = self.users(context.users)[:, None, :-1], self.items(items)[:, :, :-1]
        shape = (len(context.users), items.shape[1], -1)
        return torch.cat([user.expand(shape), item.expand(shape)], dim=2)

    def factors(self, context: Context) -> tuple[Tensor, Tensor]:
        """(p_u, 1, b_u + b) and (q_i, b_i, 1), whose inner products are the scores."""
        user, item = self.users(context.users), self.items.weight
        one = torch.ones_like
        left = torch.cat([user[:, :-1], one(user[:, -1:]), user[:, -1:] + self.bias], dim=1)
        return left, torch.cat([item, one(item[:, -1:])], dim=1)

    def fold_in(self, histories: Histories) -> Scorer:
        """The same items with users whose vectors are found by ridge regression."""
        folded = Factorization(self.settings, replace(self.sizes, users=len(histories.lengths)))
        folded.items, folded.bias = self.items, self.bias
        with torch.no_grad():
            folded.users.weight.copy_(self.ridge_fold_in().vectors(histories))
        return folded.eval()

    def ridge_fold_in(self) -> RidgeFoldIn:
        """The regression that finds users' rows of the table from their items.

        It assumes the negatives and the penalty that this model is trained with by default.
        """
        loss = QuadraticLoss(self.suited_training["negatives"], self.suited_training["l2"])
        table = self.items.weight.detach()
        return RidgeFoldIn(table[:, :-1], table[:, -1] + self.bias.detach(), loss)

    def item_similarity(self, items: Tensor) -> Tensor:
        """Cosine of the item vectors."""
        unit = nn.functional.normalize(self.items.weight[:, :-1], dim=1)
        return unit[items] @ unit.T


def scores_of_rows(user: Tensor, item: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (b, k) and mean squared norm of rows (b, d + 1) and (b, k, d + 1), the last column a bias."""
    scores = torch.einsum("bd,bkd->bk", user[:, :-1], item[:, :, :-1]) + user[:, -1:] + item[:, :, -1]
    return scores + bias, mean_norm(user[:, :-1], item[:, :, :-1])
