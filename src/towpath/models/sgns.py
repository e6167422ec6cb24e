"""Skip-gram item vectors as a model: what a user took last, and what usually keeps it company."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from towpath.data.interactions import Interactions
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.models.skip_gram import SkipGram, learn_item_vectors
from towpath.rng import Rng


class SgnsSettings(Settings):
    """Settings of skip-gram with negative sampling."""

    embedding_dim: int = Field(32, ge=1, description="Length of the item vectors.")
    window: int = Field(5, ge=1, description="How far apart in a history two items keep each other company.")
    skip_gram_negatives: int = Field(5, ge=1, description="Weight of the negatives against one positive.")
    skip_gram_epochs: int = Field(10, ge=1, description="Passes of skip-gram over the histories.")
    skip_gram_rate: float = Field(0.1, gt=0, description="Step size of skip-gram's Adagrad.")
    history: int = Field(20, ge=1, description="How many of a user's latest items speak for the user.")
    against: Literal["contexts", "vectors"] = Field(
        "contexts",
        description="What the user's items are held against: candidates as company (`contexts`, what is "
        "likely to be near), or as centres (`vectors`, cosine: what is alike).",
    )


class Sgns(Scorer):
    """score(u, i) = mean over the user's last items j of <v_j, c_i>

    With against=vectors it is the mean of the cosines of v_j and v_i. A user without items scores zero.
    Learned in one go from the training histories; there are no parameters left to train.
    """

    settings_type = SgnsSettings
    settings: SgnsSettings
    needs_seed = True
    vectors: Tensor  # (items, d) as centres
    contexts: Tensor  # (items, d) as company

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        self.history_length = self.settings.history
        for name in ("vectors", "contexts"):
            self.register_buffer(name, torch.zeros(sizes.items, self.settings.embedding_dim))

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Learn the vectors."""
        own = self.settings
        how = SkipGram(
            own.embedding_dim, own.window, own.skip_gram_negatives, own.skip_gram_epochs, own.skip_gram_rate
        )
        found = learn_item_vectors(train, how, rng)
        self.vectors.copy_(found.vectors)
        self.contexts.copy_(found.contexts)

    def score(self, context: Context, items: Tensor) -> Tensor:
        """Inner products with the mean of the user's last items."""
        alike = self.settings.against == "vectors"
        ours = normalize(self.vectors, dim=1) if alike else self.vectors
        theirs = ours if alike else self.contexts
        real = (context.histories >= 0).float()  # (b, h)
        taken = ours[context.histories.clamp(min=0)] * real[:, :, None]
        user = taken.sum(1) / real.sum(1, keepdim=True).clamp(min=1)  # (b, d)
        if len(items) == 1:
            return user @ theirs[items[0]].T
        return torch.einsum("bd,bkd->bk", user, theirs[items])

    def item_similarity(self, items: Tensor) -> Tensor:
        """Cosine of the item vectors."""
        unit = normalize(self.vectors, dim=1)
        return unit[items] @ unit.T
