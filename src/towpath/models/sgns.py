"""Skip-gram item vectors as a model: what a user took last, and what usually keeps it company."""

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
    window: int = Field(10, ge=1, description="How far apart in a history two items keep each other company.")
    skip_gram_negatives: int = Field(5, ge=1, description="Weight of the negatives against one positive.")
    skip_gram_epochs: int = Field(10, ge=1, description="Passes of skip-gram over the histories.")
    skip_gram_rate: float = Field(0.5, gt=0, description="Step size of skip-gram's Adagrad.")
    history: int = Field(5, ge=1, description="How many of a user's latest items speak for the user.")


class Sgns(Scorer):
    """score(u, i) = mean over the user's last items j of cos(v_j, v_i); zero for a user without items.

    The vectors are learned in one go from the training histories; no parameters are left to train.
    """

    settings_type = SgnsSettings
    settings: SgnsSettings
    needs_seed = True
    vectors: Tensor  # (items, d)

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        self.history_length = self.settings.history
        self.register_buffer("vectors", torch.zeros(sizes.items, self.settings.embedding_dim))

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Learn the vectors."""
        own = self.settings
        how = SkipGram(
            own.embedding_dim, own.window, own.skip_gram_negatives, own.skip_gram_epochs, own.skip_gram_rate
        )
        self.vectors.copy_(learn_item_vectors(train, how, rng).vectors)

    def score(self, context: Context, items: Tensor) -> Tensor:
        """The candidates' cosines with the user's last items."""
        unit = normalize(self.vectors, dim=1)
        histories = context.histories[:, -self.history_length :]
        real = (histories >= 0).float()  # (b, h)
        vectors = unit[histories.clamp(min=0)] * real[:, :, None]
        user = vectors.sum(1) / real.sum(1, keepdim=True).clamp(min=1)  # (b, d)
        if len(items) == 1:
            return user @ unit[items[0]].T
        return torch.einsum("bd,bkd->bk", user, unit[items])

    def item_similarity(self, items: Tensor) -> Tensor:
        """Cosine of the item vectors."""
        unit = normalize(self.vectors, dim=1)
        return unit[items] @ unit.T
