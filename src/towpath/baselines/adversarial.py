"""Adversarial counterfactual learning (Xu et al. 2020): f against the worst exposure that fits the data."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from towpath.device import device_of
from towpath.errors import ConfigError
from towpath.models.model_setting import PlayerSetting
from towpath.models.players import longest_history, player_model
from towpath.models.scorer import Scorer, Settings
from towpath.training.batches import Batch, make_batches
from towpath.training.fit import EpochMetrics
from towpath.training.learner import Learner
from towpath.training.losses import logistic_loss
from towpath.training.optimiser import Optimiser
from towpath.training.scored_pairs import score_pairs
from towpath.training.task import TrainingTask

LabelEffect = Literal["interaction", "additive"]


class AdversarialSettings(Settings):
    """Settings of adversarial counterfactual learning."""

    g: PlayerSetting = Field("", description="Model that plays the adversary g; empty: the same as f.")
    adversary_fit: float = Field(0.5, ge=0, description="Weight of the adversary's own loss on the feedback.")
    hinge_margin: float = Field(
        0.1,
        ge=0,
        description="Margin by which f's reweighted loss must exceed it for g to get no gradient from a "
        "pair.",
    )
    min_propensity: float = Field(
        0.1, gt=0, le=1, description="Smallest probability of exposure; its inverse is the largest weight."
    )
    label_effect: LabelEffect = Field(
        "interaction",
        description="How the label enters the probability of exposure: times the adversary's score "
        "(`interaction`), or on its own (`additive`).",
    )
    warm_epochs: int = Field(5, ge=0, description="Passes in which the adversary alone fits the feedback.")
    learning_rate_g: float = Field(0.01, gt=0, description="Step size of the adversary.")
    learning_rate_link: float = Field(
        0.01,
        gt=0,
        description="Step size of the three parameters that turn the adversary's score into a "
        "probability of exposure.",
    )


class PropensityLink(nn.Module):
    """The chance that a pair was shown, from the adversary's score and the label.

        q = clamp(sigmoid(a + b g + c y g), least, 1)        interaction
        q = clamp(sigmoid(a + b g + c y), least, 1)          additive

    It starts at q = sigmoid(g).
    """

    def __init__(self, least: float, label_effect: LabelEffect) -> None:
        super().__init__()
        self._least, self._label_effect = least, label_effect
        self.line = nn.Parameter(torch.tensor([0.0, 1.0, 0.0]))

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Chances, in [least, 1], of the shape of the scores and labels."""
        a, b, c = self.line
        by_label = labels * scores if self._label_effect == "interaction" else labels
        return torch.sigmoid(a + b * scores + c * by_label).clamp(min=self._least, max=1)


def adversary_hinge(own: Tensor, reweighted: Tensor, fit: float, margin: float) -> Tensor:
    """What the adversary descends on each pair: elementwise.

        max(0, margin + fit * l(y, g) - l(y, f) / q)

    own = l(y, g), reweighted = l(y, f) / q with l(y, f) held fixed. Zero, and without gradient, where f's
    loss already exceeds the adversary's by the margin.

    >>> adversary_hinge(torch.tensor([1.0, 1.0]), torch.tensor([0.2, 3.0]), fit=0.5, margin=0.1)
    tensor([0.4000, 0.0000])
    """
    return torch.relu(margin + fit * own - reweighted)


class AdversarialLearner(Learner):
    """Trains f on the loss over the chances of exposure that an adversary g finds worst for it.

        min over f, (a, b, c)  max over g:   mean of l(y, f) / q(g, y) - fit * mean of l(y, g)

    g fits the feedback alone at first; then every epoch is one pass of f and the link, and one of g. Only f
    is deployed. The link is on f's side, so it may raise q to one, whereupon f is trained as if plainly:
    `propensity` in the history tells.
    """

    def __init__(self, task: TrainingTask, settings: AdversarialSettings) -> None:
        self.scorer, training = task.scorer, task.training
        self._training, self._settings, self._rng = training, settings, task.rng
        self._optimiser = Optimiser([task.scorer], training.learning_rate, training.clip_norm)
        self.adversary = player_model(settings.g, "g", task.scorer, task.train, task.rng)
        _refuse_other_histories(self.adversary, task.scorer)
        longest = longest_history(task.scorer, self.adversary)
        self._batches = make_batches(task.train, task.scorer, training, history_length=longest)
        self._adversary_optimiser = Optimiser(
            [self.adversary], settings.learning_rate_g, training.clip_norm, own_rates=False
        )
        self.link = PropensityLink(settings.min_propensity, settings.label_effect)
        self.link.to(device_of(task.scorer))
        self._link_optimiser = Optimiser([self.link], settings.learning_rate_link)

    def players(self) -> dict[str, nn.Module]:
        """The adversary, and what makes a chance of exposure of its score."""
        return {"g": self.adversary, "link": self.link}

    def optimisers(self) -> dict[str, Optimiser]:
        """Those of f, g and the link."""
        return {"f": self._optimiser, "g": self._adversary_optimiser, "link": self._link_optimiser}

    def epoch(self, number: int) -> EpochMetrics:
        """One pass of f with the link, then one of the adversary; before the first, the adversary's own."""
        self._optimiser.set_lr_scale(self._training.lr_scale(number))
        self._batches.refresh()
        if number == 1:
            self._warm_up()
        looks = [self._move_f(batch) for batch in self._batches.epoch(number, self._rng)]
        moves = [self._move_g(batch) for batch in self._batches.epoch(number, self._rng, name="adversary ")]
        loss, propensity = torch.stack(looks).mean(0).tolist()
        hinge, active = torch.stack(moves).mean(0).tolist()
        return {"loss": loss, "propensity": propensity, "hinge": hinge, "active": active}

    def _warm_up(self) -> None:
        """Let the adversary fit the feedback alone."""
        self.adversary.train()
        for lap in range(self._settings.warm_epochs):
            for batch in self._batches.epoch(lap, self._rng, name="warm "):
                scored = score_pairs(self.adversary, batch.context, batch.items)
                loss = logistic_loss(scored.scores, batch.labels).mean()
                scored.descend(self._adversary_optimiser, loss, self._training.l2)

    def _move_f(self, batch: Batch) -> Tensor:
        """A step of f and of the link, both from where they stood: the loss and the mean chance, (2,)."""
        self.scorer.train()
        self.adversary.eval()
        with torch.no_grad():
            adversary = self.adversary.score(batch.context, batch.items)
        chances = self.link(adversary, batch.labels)
        scored = score_pairs(self.scorer, batch.context, batch.items)
        losses = logistic_loss(scored.scores, batch.labels)
        risk = (losses / chances.detach()).mean()
        self._link_optimiser.step((losses.detach() / chances).mean())
        loss = scored.descend(self._optimiser, risk, self._training.l2)
        return torch.stack([loss, chances.detach().mean()]).cpu()

    def _move_g(self, batch: Batch) -> Tensor:
        """A step of the adversary: its hinge and the share of pairs on which it is not at rest, (2,)."""
        self.scorer.eval()
        self.adversary.train()
        with torch.no_grad():
            losses = logistic_loss(self.scorer.score(batch.context, batch.items), batch.labels)
        scored = score_pairs(self.adversary, batch.context, batch.items)
        hinge = self._hinge(scored.scores, batch.labels, losses)
        scored.descend(self._adversary_optimiser, hinge.mean(), self._training.l2)
        return torch.stack([hinge.detach().mean(), (hinge.detach() > 0).float().mean()]).cpu()

    def _hinge(self, scores: Tensor, labels: Tensor, losses: Tensor) -> Tensor:
        """The adversary's hinge, (b, k) like its scores and f's losses.

        Its gradient reaches g through its own loss and through q.
        """
        reweighted = losses / self.link(scores, labels)
        own = logistic_loss(scores, labels)
        return adversary_hinge(own, reweighted, self._settings.adversary_fit, self._settings.hinge_margin)


def _refuse_other_histories(adversary: Scorer, scorer: Scorer) -> None:
    """Nothing, unless f learns from windows of histories and the adversary wants another form of them."""
    if scorer.trains_on_sequences and adversary.history_length and not adversary.trains_on_sequences:
        raise ConfigError(
            f"{type(scorer).__name__} learns from windows of histories, which the adversary "
            f"{type(adversary).__name__} cannot read; choose a g of the same kind, or mf."
        )
