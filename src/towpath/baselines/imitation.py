"""Shown against the catalogue, clicks ignored: the next recommender copies the last one."""

import torch
from torch import Tensor

from towpath.models.capabilities import score_with_norm
from towpath.models.scorer import Scorer
from towpath.training.impressions import ImpressionBatch
from towpath.training.losses import logistic_loss


def imitation_risk(scorer: Scorer, batch: ImpressionBatch) -> tuple[Tensor, Tensor]:
    """Mean over impressions and draws of  l(s_ui, o_ui),  o = 1 for what was shown.

    Strong where the earlier recommender was good, useless where it chose at random.
    """
    scores, norm = score_with_norm(scorer, batch.context, batch.items)
    weights = torch.ones_like(scores)
    weights[:, 1:] -= batch.shown[:, 1:]  # a draw that was shown as well is no negative
    labels = torch.zeros_like(scores)
    labels[:, 0] = 1
    return (weights * logistic_loss(scores, labels)).sum() / weights.sum(), norm
