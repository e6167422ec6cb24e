"""Clicked against shown but not clicked: the textbook risk on the logged domain, and nothing beyond it."""

from torch import Tensor

from towpath.models.capabilities import score_with_norm
from towpath.models.scorer import Scorer
from towpath.training.impressions import ImpressionBatch
from towpath.training.losses import logistic_loss


def shown_risk(scorer: Scorer, batch: ImpressionBatch) -> tuple[Tensor, Tensor]:
    """Mean over impressions of  l(s_ui, y_ui),  y = 1 for a click.

    Says nothing about pairs that were never shown; without overlap its lists are little better than chance.
    """
    scores, norm = score_with_norm(scorer, batch.context, batch.items[:, :1])
    return logistic_loss(scores[:, 0], batch.clicks).mean(), norm
