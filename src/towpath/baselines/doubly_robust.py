"""Doubly robust joint learning: a second model imputes the errors of the first, propensities correct it."""

import torch
from pydantic import Field
from torch import Tensor, nn

from towpath.baselines.propensity import PropensitySettings, floored, make_propensity
from towpath.data.interactions import Interactions
from towpath.device import device_of
from towpath.errors import ConfigError
from towpath.models.model_setting import PlayerSetting
from towpath.models.players import longest_history, player_rng
from towpath.models.registry import model_type, parse_settings
from towpath.models.scorer import Scorer, Settings
from towpath.rng import Rng
from towpath.training.batches import Batch, make_batches
from towpath.training.fit import EpochMetrics
from towpath.training.learner import Learner
from towpath.training.losses import logistic_loss
from towpath.training.optimiser import Optimiser
from towpath.training.scored_pairs import score_pairs
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask


class DoublyRobustSettings(PropensitySettings):
    """Settings of doubly robust joint learning."""

    imputation: PlayerSetting = Field("", description="Model that imputes labels; empty: the same as f.")
    imputation_dim: int = Field(8, ge=1, description="Its embedding_dim, where it has one.")
    learning_rate_imputation: float = Field(0.01, gt=0, description="Step size of the imputation model.")
    logit_limit: float = Field(
        8.0,
        gt=0,
        description="Scores of observed pairs are clamped at this value in the correction, which is "
        "linear in the score and has no bound.",
    )


def imputed_loss(scores: Tensor, pseudo_labels: Tensor) -> Tensor:
    """The loss that a pair would have if its label were the imputed one, in (0, 1), elementwise.

    e_hat = log(1 + e^s) - r s, the cross entropy of the label r under the prediction sigmoid(s)
    """
    return logistic_loss(scores, pseudo_labels)


def doubly_robust_risk(imputed: Tensor, residual: Tensor, propensity: Tensor, pairs: Tensor) -> Tensor:
    """The mean loss over all pairs, from imputed losses everywhere and true ones where there are labels.

        R = mean_D e_hat + (1 / pairs) sum_O (e - e_hat) / p

    imputed: e_hat of pairs drawn from all. residual, propensity: e - e_hat and p of the observed pairs.
    `pairs` is how many of all pairs the observed ones were observed among. Unbiased if p is right or if e_hat
    is; where p is known up to a factor only, `pairs` = sum_O 1/p cancels it.

    >>> one, two = torch.tensor([1.0]), torch.tensor([2.0])
    >>> doubly_robust_risk(one, two, torch.tensor([0.5]), pairs=torch.tensor(4.0))
    tensor(2.)
    """
    return imputed.mean() + (residual / propensity).sum() / pairs


def imputation_risk(imputed: Tensor, losses: Tensor, propensity: Tensor) -> Tensor:
    """How far imputed losses are from true ones, as if every pair had been observed.

    R = sum_O (e_hat - e)^2 / p / sum_O 1/p
    """
    return ((imputed - losses).square() / propensity).sum() / (1 / propensity).sum()


class DoublyRobustLearner(Learner):
    """Alternates between the imputation model and f, one step of each on every batch.

    Observed are the batch's positives and its sampled negatives, both with their labels: were it positives
    alone, the imputation model would learn that every label is one.
    """

    def __init__(self, task: TrainingTask, settings: DoublyRobustSettings) -> None:
        self.scorer, training = task.scorer, task.training
        self._train, self._training, self._settings, self._rng = task.train, training, settings, task.rng
        self._optimiser = Optimiser([task.scorer], training.learning_rate, training.clip_norm)
        self.imputation = _imputation_model(task.scorer, task.train, settings, task.rng)
        self._imputation_optimiser = Optimiser(
            [self.imputation], settings.learning_rate_imputation, training.clip_norm
        )
        longest = longest_history(task.scorer, self.imputation)
        self._batches = make_batches(task.train, task.scorer, training, history_length=longest)
        self.propensity = make_propensity(task.train, settings, task.rng).to(device_of(task.scorer))

    def players(self) -> dict[str, nn.Module]:
        """The imputation model, and the exposure model if there is one."""
        return {"imputation": self.imputation, "propensity": self.propensity}

    def optimisers(self) -> dict[str, Optimiser]:
        """Those of both models."""
        return {"f": self._optimiser, "imputation": self._imputation_optimiser}

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the positives."""
        self._optimiser.set_lr_scale(self._training.lr_scale(number))
        if number == 1:
            self.propensity.fit(self._train)
        self._batches.refresh()
        self.scorer.train()
        self.imputation.train()
        anywhere = self._rng.torch("anywhere", number)
        totals = torch.zeros(5)
        for batch in self._batches.epoch(number, self._rng):
            items = torch.randint(self._train.n_items, batch.items.shape, generator=anywhere)
            totals += self._round(batch, items.to(batch.items.device))
        names = ("loss", "imputation_loss", "correction", "clamped_logits", "floored")
        return dict(zip(names, (totals / len(self._batches)).tolist(), strict=True))

    def _round(self, batch: Batch, anywhere: Tensor) -> Tensor:
        """A step of the imputation model, then one of f; `anywhere` (b, k) are items drawn at random."""
        width = batch.items.shape[1]
        items = torch.cat([batch.items, anywhere], dim=1)
        # One look-up, and one encoding of histories, for both kinds of pairs.
        scored = score_pairs(self.scorer, batch.context, items)
        scores = scored.scores
        raw = self.propensity(batch)
        propensity = floored(raw, self._settings.floor)
        imputation_loss = self._move_imputation(batch, scores.detach()[:, :width], propensity)
        with torch.no_grad():
            pseudo = torch.sigmoid(self.imputation.score(batch.context, items))
        observed = scores[:, :width].clamp(-self._settings.logit_limit, self._settings.logit_limit)
        residual = logistic_loss(observed, batch.labels) - imputed_loss(observed, pseudo[:, :width])
        imputed = imputed_loss(scores[:, width:], pseudo[:, width:])
        risk = doubly_robust_risk(imputed, residual, propensity, (1 / propensity).sum())
        loss = scored.descend(self._optimiser, risk, self._training.l2)
        clamped = (observed != scores[:, :width]).float().mean()
        low = (raw < self._settings.floor).float().mean()
        seen = (loss, imputation_loss, risk - imputed.mean(), clamped, low)
        return torch.stack(seen).detach().cpu()

    def _move_imputation(self, batch: Batch, scores: Tensor, propensity: Tensor) -> Tensor:
        """Bring imputed losses of the observed pairs closer to the true ones of f, which stays as it is."""
        scored = score_pairs(self.imputation, batch.context, batch.items)
        imputed = imputed_loss(scores, torch.sigmoid(scored.scores))
        risk = imputation_risk(imputed, logistic_loss(scores, batch.labels), propensity)
        scored.descend(self._imputation_optimiser, risk, self._training.l2)
        return risk


def refuse_catalogue(training: TrainingSettings, settings: Settings) -> None:
    """Nothing, unless every pair would be labelled: then none is left to impute a loss for."""
    if training.pairs == "catalogue":
        raise ConfigError(
            "With the method 'doubly-robust', pairs=catalogue leaves nothing to impute, since every pair "
            "would have a label; use pairs=sampled."
        )


def _imputation_model(
    scorer: Scorer, train: Interactions, settings: DoublyRobustSettings, rng: Rng
) -> Scorer:
    """A filled model with defaults but for its width: the named one, or one of f's kind."""
    kind = model_type(settings.imputation) if settings.imputation else type(scorer)
    sized = "embedding_dim" in kind.settings_type.model_fields
    chosen = parse_settings(kind.settings_type, {"embedding_dim": settings.imputation_dim} if sized else {})
    model = kind(chosen, scorer.sizes)
    model.initialise(train, player_rng(rng, "imputation"))
    return model.to(device_of(scorer))
