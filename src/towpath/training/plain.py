"""Plain training: the mean loss over the batches, each pair or step counting the same."""

import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.device import device_of
from towpath.models.scorer import Scorer
from towpath.rng import Rng
from towpath.training.batches import Batch, make_batches
from towpath.training.checkpoint import add_prefix, strip_prefix
from towpath.training.fit import EpochMetrics
from towpath.training.losses import catalogue_softmax_risk, logistic_loss, logistic_slope, softmax_loss
from towpath.training.optimiser import Optimiser
from towpath.training.settings import TrainingSettings


class PlainLearner:
    """Minimises the mean loss, logistic or softmax, plus the per-example L2 penalty."""

    def __init__(self, scorer: Scorer, train: Interactions, settings: TrainingSettings, rng: Rng) -> None:
        self.scorer = scorer
        self._settings = settings
        self._rng = rng
        self._batches = make_batches(train, scorer, settings)
        self._optimiser = Optimiser([scorer], settings.learning_rate, settings.clip_norm)

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the positives."""
        self._optimiser.set_lr_scale(self._settings.lr_scale(number))
        self._batches.refresh()
        self.scorer.train()
        total = torch.zeros((), device=device_of(self.scorer))
        for batch in self._batches.epoch(number, self._rng):
            total += self._step(batch)
        return {"loss": float(total) / len(self._batches)}

    def state(self) -> dict[str, Tensor]:
        """The parameters and the optimiser's moments."""
        return add_prefix("scorer", self.scorer.state_dict()) | add_prefix(
            "optimiser", self._optimiser.state()
        )

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to a state."""
        self.scorer.load_state_dict(strip_prefix("scorer", state))
        self._optimiser.load_state(strip_prefix("optimiser", state))

    def auxiliary_state(self) -> dict[str, Tensor]:
        """Nothing: there is one player."""
        return {}

    def _step(self, batch: Batch) -> Tensor:
        """One step, and the loss before it."""
        if self._settings.loss == "softmax" or not self.scorer.has_manual_backward(
            batch.context, batch.items
        ):
            loss = self._loss(batch)
            self._optimiser.step(loss)
            return loss.detach()
        with torch.no_grad():
            scores, norm = self.scorer.score_with_norm(batch.context, batch.items)
            slopes = logistic_slope(scores, batch.labels).mul_(1 / scores.numel())
            self._optimiser.apply_gradients(
                self.scorer.gradients(batch.context, batch.items, slopes, self._settings.l2)
            )
            return logistic_loss(scores, batch.labels).mean() + self._settings.l2 * norm

    def _loss(self, batch: Batch) -> Tensor:
        if self._settings.loss == "softmax" and self._whole_catalogue_at_each_step:
            return catalogue_softmax_risk(*self.scorer.factors(batch.context), batch.items[:, 0])
        scores, norm = self.scorer.score_with_norm(batch.context, batch.items)
        loss = softmax_loss if self._settings.loss == "softmax" else logistic_loss
        return loss(scores, batch.labels).mean() + self._settings.l2 * norm

    @property
    def _whole_catalogue_at_each_step(self) -> bool:
        """Whether scores of all items would be too many to hold, so that only positives are in a batch."""
        return self.scorer.trains_on_sequences and self._settings.pairs == "catalogue"
