"""One-step conservative learning (after CQL, Kumar et al. 2020): scores off the log are pushed down."""

import torch
from pydantic import Field
from torch import Tensor

from towpath.models.capabilities import score_with_norm
from towpath.models.scorer import Scorer, Settings
from towpath.training.impressions import ImpressionBatch
from towpath.training.losses import logistic_loss


class ConservativeSettings(Settings):
    """Settings of conservative learning."""

    conservatism: float = Field(
        0.3,
        ge=0,
        description="Price of scoring the catalogue higher than what was shown; 0: shown pairs only.",
    )


def conservative_risk(
    scorer: Scorer, batch: ImpressionBatch, settings: ConservativeSettings
) -> tuple[Tensor, Tensor]:
    """Mean over impressions of  l(s_ui, y) + conservatism * (log mean_j exp s_uj - s_ui).

    j runs over the item itself and the draws from the catalogue.
    """
    scores, norm = score_with_norm(scorer, batch.context, batch.items)
    gap = torch.logsumexp(scores, dim=1) - scores[:, 0]
    return (logistic_loss(scores[:, 0], batch.clicks) + settings.conservatism * gap).mean(), norm
