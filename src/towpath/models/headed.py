"""Several heads on one representation: any model as the tower, with biases of their own for each head."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from towpath.data.interactions import Interactions
from towpath.models.capabilities import (
    HasParameterRates,
    NeedsPretraining,
    score_with_norm,
    with_item_similarity,
    with_pair_features,
)
from towpath.models.model_setting import ModelSetting
from towpath.models.pair_tables import table_of
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.rng import Rng


class HeadedSettings(Settings):
    """Settings of a tower with heads; methods that need one make it themselves."""

    tower: ModelSetting = Field("mf", description="Model that scores pairs for all heads.")
    tower_settings: dict[str, Any] = Field(  # of whatever type a setting has
        {}, description="Settings of that model."
    )
    heads: int = Field(2, ge=1, description="How many heads there are.")
    combine: Literal["sum", "product"] = Field(
        "sum",
        description="How a pair is ranked: by the weighted `sum` of the heads' logits, or by the `product` "
        "of their chances.",
    )


class Headed(Scorer):
    """logit_h(u, i) = T(u, i) + a_uh + b_ih + b_h,   T the score of the tower

    score = sum_h w_h logit_h     or     score = sum_h log sigmoid(logit_h)
    """

    settings_type = HeadedSettings
    settings: HeadedSettings
    weights: Tensor  # (H,) of the sum

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        from towpath.models.registry import build  # which knows this model too

        super().__init__(settings, sizes)
        heads = self.settings.heads
        self.tower = build(self.settings.tower, self.settings.tower_settings, sizes)
        self.history_length = self.tower.history_length
        self.users, self.items = table_of(sizes.users, heads), table_of(sizes.items, heads)
        self.bias = nn.Parameter(torch.zeros(heads))
        self.register_buffer("weights", torch.full((heads,), 1 / heads))

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Start the tower as it starts alone; all biases at zero."""
        self.tower.initialise(train, rng)
        self.remarks = self.tower.remarks
        with torch.no_grad():
            for biases in (self.users.weight, self.items.weight, self.bias):
                biases.zero_()

    def rates(self) -> dict[str, float]:
        """Those of the tower."""
        if not isinstance(self.tower, HasParameterRates):
            return {}
        return {f"tower.{name}": rate for name, rate in self.tower.rates().items()}

    def to_pretrain(self) -> tuple[int, Sequence[Scorer]]:
        """The parts of the tower that it wants trained first."""
        return self.tower.to_pretrain() if isinstance(self.tower, NeedsPretraining) else (0, ())

    def pretrained(self) -> None:
        """The tower puts its parts together."""
        if isinstance(self.tower, NeedsPretraining):
            self.tower.pretrained()

    def logits(self, context: Context, items: Tensor) -> Tensor:
        """Logits (b, k, H) of all heads."""
        return self.logits_with_norm(context, items)[0]

    def logits_with_norm(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (b, k, H) of all heads, and what an L2 penalty charges the tower for."""
        scores, norm = score_with_norm(self.tower, context, items)
        return scores[..., None] + self.users(context.users)[:, None] + self.items(items) + self.bias, norm

    def score(self, context: Context, items: Tensor) -> Tensor:
        """The heads taken together: (b, k)."""
        return self.combined(self.logits(context, items))

    def score_with_norm(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """The same, and what an L2 penalty charges for."""
        logits, norm = self.logits_with_norm(context, items)
        return self.combined(logits), norm

    def combined(self, logits: Tensor) -> Tensor:
        """What a pair is ranked by, from its logits (..., H)."""
        if self.settings.combine == "product":
            return logsigmoid(logits).sum(-1)
        return logits @ self.weights

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """Those of the tower: the representation that the heads share."""
        return with_pair_features(self.tower).pair_features(context, items)

    def item_similarity(self, items: Tensor) -> Tensor:
        """That of the tower."""
        return with_item_similarity(self.tower).item_similarity(items)


def with_heads(tower: Scorer, heads: int, combine: Literal["sum", "product"]) -> Headed:
    """The tower itself, started already, with fresh heads on it."""
    settings = HeadedSettings(
        tower=type(tower),
        tower_settings=tower.settings.model_dump(),
        heads=heads,
        combine=combine,
    )
    headed = Headed(settings, tower.sizes)
    headed.tower = tower
    headed.remarks = tower.remarks
    return headed
