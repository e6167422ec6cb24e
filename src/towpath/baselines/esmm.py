"""ESMM (Ma et al. 2018) and ESCM2 (Wang et al. 2022): being shown and being clicked, over the catalogue.

Two heads on one representation: e, the chance of being shown, and r, the chance of a click once shown. Pairs
are ranked by the product of the two chances, the chance of being shown and clicked.
"""

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import logsigmoid

from towpath.models.headed import Headed
from towpath.models.scorer import Scorer, Settings
from towpath.training.impressions import ImpressionBatch
from towpath.training.losses import logistic_loss

_LARGEST = -1e-6  # logarithm of a chance just below one


class CounterfactualSettings(Settings):
    """Settings of ESCM2."""

    counterfactual: float = Field(
        0.3, ge=0, description="Weight of the inverse-propensity risk of the click given the showing."
    )
    floor: float = Field(0.02, gt=0, le=1, description="Chances of being shown below this are raised to it.")


def product_loss(shown: Tensor, click: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of a label under sigmoid(e) * sigmoid(r), elementwise.

        l = -y log p - (1 - y) log(1 - p),      p = sigmoid(e) sigmoid(r)

    >>> product_loss(torch.zeros(1), torch.zeros(1), torch.ones(1))
    tensor([1.3863])
    """
    log_chance = (logsigmoid(shown) + logsigmoid(click)).clamp(max=_LARGEST)
    return -labels * log_chance - (1 - labels) * torch.log(-torch.expm1(log_chance))


def esmm_risk(scorer: Scorer, batch: ImpressionBatch) -> tuple[Tensor, Tensor]:
    """Mean over impressions and draws of  l(e, o) + l(e r, y),  o = 1 if shown, y = 1 if clicked."""
    logits, norm = _logits(scorer, batch)
    return _entire_space_risk(logits, batch), norm


def escm2_risk(
    scorer: Scorer, batch: ImpressionBatch, settings: CounterfactualSettings
) -> tuple[Tensor, Tensor]:
    """The risk of ESMM plus, over what was shown, the click's loss by inverse propensity:

        + counterfactual * (1/n) sum over shown of  l(r, y) / max(sigmoid(e), floor)

    n counts all pairs; the propensity carries no gradient.
    """
    logits, norm = _logits(scorer, batch)
    chance = torch.sigmoid(logits[:, 0, 0].detach()).clamp(min=settings.floor)
    inverse = (logistic_loss(logits[:, 0, 1], batch.clicks) / chance).sum() / batch.items.numel()
    return _entire_space_risk(logits, batch) + settings.counterfactual * inverse, norm


def _logits(scorer: Scorer, batch: ImpressionBatch) -> tuple[Tensor, Tensor]:
    assert isinstance(scorer, Headed)
    return scorer.logits_with_norm(batch.context, batch.items)


def _entire_space_risk(logits: Tensor, batch: ImpressionBatch) -> Tensor:
    shown, click = logits.unbind(-1)
    labels = torch.zeros_like(shown)
    labels[:, 0] = batch.clicks
    return (logistic_loss(shown, batch.shown) + product_loss(shown, click, labels)).mean()
