"""The most popular items for everyone: the row that must match before any other number is believed."""

import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.rng import Rng


class PopularitySettings(Settings):
    """Popularity has nothing to set."""


class Popularity(Scorer):
    """score(u, i) = number of training interactions with item i."""

    settings_type = PopularitySettings
    counts: Tensor

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        self.register_buffer("counts", torch.zeros(sizes.items))

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Count."""
        self.counts.copy_(torch.from_numpy(train.item_counts))

    def score(self, context: Context, items: Tensor) -> Tensor:
        """Counts of the items, the same for every user."""
        return self.counts[items].expand(len(context.users), -1)
