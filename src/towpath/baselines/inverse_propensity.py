"""Inverse propensity weighting: every positive counts for the pairs like it that were never shown."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from towpath.baselines.propensity import PropensitySettings, floored, make_propensity
from towpath.device import device_of
from towpath.training.batches import Batch, make_batches
from towpath.training.fit import EpochMetrics
from towpath.training.learner import Learner
from towpath.training.losses import logistic_loss
from towpath.training.optimiser import Optimiser
from towpath.training.scored_pairs import score_pairs
from towpath.training.task import TrainingTask

Variant = Literal["unbiased", "squared", "weighted", "non-negative"]


class InversePropensitySettings(PropensitySettings):
    """Settings of inverse propensity weighting."""

    variant: Variant = Field(
        "weighted",
        description="`unbiased`: cross entropy whose expectation over exposure is that of relevance, "
        "logits of positives clamped; `squared`: the same with squared errors of the "
        "sigmoid; `weighted`: cross entropy with weight 1/propensity on positives; "
        "`non-negative`: as unbiased, but the mean of its second part is never below zero.",
    )
    logit_limit: float = Field(
        8.0,
        gt=0,
        description="Scores of positives are clamped at this value (variant=unbiased), since their loss "
        "has no lower bound.",
    )


def unbiased_loss(scores: Tensor, labels: Tensor, propensity: Tensor, limit: float) -> Tensor:
    """A loss whose expectation over exposure is the cross entropy of relevance, elementwise.

        l = (y/p) log(1 + e^-s) + (1 - y/p) log(1 + e^s) = log(1 + e^s) - (y/p) s

    y is a click (shown and relevant), p in (0, 1] the chance of having been shown. With p < 1 a positive's
    loss falls without end as s grows, so s stops at `limit` there; elsewhere nothing is clamped, and p = 1
    is plain cross entropy.
    """
    target = labels / propensity
    return logistic_loss(torch.where(target > 1, scores.clamp(max=limit), scores), target)


def squared_loss(scores: Tensor, labels: Tensor, propensity: Tensor) -> Tensor:
    """The same for the squared error of the chance, elementwise; it is bounded below.

    l = (y/p) (1 - sigmoid(s))^2 + (1 - y/p) sigmoid(s)^2
    """
    chance, target = torch.sigmoid(scores), labels / propensity
    return target * (1 - chance).square() + (1 - target) * chance.square()


def weighted_loss(scores: Tensor, labels: Tensor, propensity: Tensor) -> Tensor:
    """Cross entropy, that of positives times 1/p, elementwise: not unbiased, but bounded below by zero."""
    return torch.where(labels > 0, 1 / propensity, 1) * logistic_loss(scores, labels)


def non_negative_risk(scores: Tensor, labels: Tensor, propensity: Tensor) -> Tensor:
    """The mean of the unbiased loss, the part of it that estimates something positive held at zero or above.

    R = mean[(y/p) log(1 + e^-s)] + max(0, mean[(1 - y/p) log(1 + e^s)])
    """
    target = labels / propensity
    relevant = target * logistic_loss(scores, torch.ones_like(scores))
    irrelevant = (1 - target) * logistic_loss(scores, torch.zeros_like(scores))
    return relevant.mean() + irrelevant.mean().clamp(min=0)


def shown_risk(scores: Tensor, labels: Tensor, propensity: Tensor) -> Tensor:
    """The risk over all pairs, estimated from those that were shown, clicked (1) or not (0).

        R = sum l(s, y) / p   /   sum 1 / p

    Consistent if every pair could have been shown; what never could be has no say.
    """
    return (logistic_loss(scores, labels) / propensity).sum() / (1 / propensity).sum()


class InversePropensityLearner(Learner):
    """Minimises the loss reweighted by propensities, on the same batches as plain training."""

    def __init__(self, task: TrainingTask, settings: InversePropensitySettings) -> None:
        self.scorer = task.scorer
        self._train, self._training, self._settings, self._rng = task.train, task.training, settings, task.rng
        self._batches = make_batches(task.train, task.scorer, task.training)
        self._optimiser = Optimiser([task.scorer], task.training.learning_rate, task.training.clip_norm)
        self.propensity = make_propensity(task.train, settings, task.rng).to(device_of(task.scorer))

    def players(self) -> dict[str, nn.Module]:
        """The exposure model, if there is one."""
        return {"propensity": self.propensity}

    def optimisers(self) -> dict[str, Optimiser]:
        """That of the scorer."""
        return {"f": self._optimiser}

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the positives."""
        self._optimiser.set_lr_scale(self._training.lr_scale(number))
        if number == 1:
            self.propensity.fit(self._train)
        self._batches.refresh()
        self.scorer.train()
        total, shares = torch.zeros(()), torch.zeros(2)
        for batch in self._batches.epoch(number, self._rng):
            scored = score_pairs(self.scorer, batch.context, batch.items)
            propensity = self.propensity(batch)
            risk = self._risk(scored.scores, batch.labels, propensity)
            total += scored.descend(self._optimiser, risk, self._training.l2).cpu()
            shares += self._limits(scored.scores.detach(), batch, propensity)
        clamped, low = (shares / len(self._batches)).tolist()
        return {"loss": float(total) / len(self._batches), "clamped_logits": clamped, "floored": low}

    def _risk(self, scores: Tensor, labels: Tensor, propensity: Tensor) -> Tensor:
        chance = floored(propensity, self._settings.floor)
        if self._training.pairs == "shown":
            return shown_risk(scores, labels, chance)
        if self._settings.variant == "squared":
            return squared_loss(scores, labels, chance).mean()
        if self._settings.variant == "weighted":
            return weighted_loss(scores, labels, chance).mean()
        if self._settings.variant == "non-negative":
            return non_negative_risk(scores, labels, chance)
        return unbiased_loss(scores, labels, chance, self._settings.logit_limit).mean()

    def _limits(self, scores: Tensor, batch: Batch, propensity: Tensor) -> Tensor:
        """The shares of positives whose logit is beyond its limit and whose propensity is floored: (2,)."""
        positive = batch.labels > 0
        beyond = scores[positive] > self._settings.logit_limit
        low = propensity[positive] < self._settings.floor
        return torch.stack([beyond.float().mean(), low.float().mean()]).cpu()
