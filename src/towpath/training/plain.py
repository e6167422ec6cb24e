"""Plain training: the mean loss over the batches, each pair or step counting the same."""

import torch
from torch import Tensor

from towpath.device import device_of
from towpath.kernels.softmax_loss import Seen
from towpath.kernels.threads import at_once
from towpath.models.capabilities import manual_backward, score_with_norm, with_factors
from towpath.models.scorer import Scorer, Settings
from towpath.training.batches import Batch, make_batches
from towpath.training.distributed import slice_of, workers
from towpath.training.fit import EpochMetrics
from towpath.training.learner import Learner
from towpath.training.losses import catalogue_softmax_risk, logistic_loss, logistic_slope, softmax_loss
from towpath.training.optimiser import Optimiser
from towpath.training.shared_batch import SharedBatches
from towpath.training.task import TrainingTask


class PlainSettings(Settings):
    """Plain training has no settings beyond those of the fit loop."""


class PlainLearner(Learner):
    """Minimises the mean loss, logistic or softmax, plus the per-example L2 penalty."""

    def __init__(
        self, task: TrainingTask, settings: PlainSettings | None = None, optimiser: Optimiser | None = None
    ) -> None:
        self.scorer, self._training, self._rng = task.scorer, task.training, task.rng
        self._batches = make_batches(task.train, task.scorer, task.training)
        self._optimiser = optimiser or Optimiser(
            [task.scorer], task.training.learning_rate, task.training.clip_norm
        )
        self._workers = self._optimiser.workers = workers()
        self._shared: SharedBatches | None = None

    def optimisers(self) -> dict[str, Optimiser]:
        """That of the scorer."""
        return {"f": self._optimiser}

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the positives."""
        self._optimiser.set_lr_scale(self._training.lr_scale(number))
        self._batches.refresh()
        self.scorer.train()
        self._shared = SharedBatches(self.scorer) if self._is_shared else None
        total = torch.zeros((), device=device_of(self.scorer))
        for batch in self._batches.epoch(number, self._rng):
            mine = slice_of(batch, self._workers)
            total += self._step(mine.batch, mine.share)
        total = total if self._workers is None else self._workers.total(total)
        return {"loss": float(total) / len(self._batches)}

    def _step(self, batch: Batch, share: float) -> Tensor:
        """One step on a slice of a batch, and its share of the loss before it."""
        context, items, softmax = batch.context, batch.items, self._training.loss == "softmax"
        scorer = None if softmax else manual_backward(self.scorer, context, items)
        if scorer is None and self._shared is not None:
            gradients, loss = self._shared.gradients(batch, self._loss)
            self._optimiser.apply_gradients(gradients)
            return loss
        if scorer is None:
            loss = self._loss(self.scorer, batch) * share
            self._optimiser.step(loss)
            return loss.detach()
        with torch.no_grad():
            scores, norm = scorer.score_with_norm(context, items)
            slopes = logistic_slope(scores, batch.labels).mul_(share / scores.numel())
            if batch.weights is not None:
                slopes.mul_(batch.weights)
            l2 = self._training.l2
            self._optimiser.apply_gradients(scorer.gradients(context, items, slopes, l2 * share))
            return (_weighted(logistic_loss(scores, batch.labels), batch).mean() + l2 * norm) * share

    def _loss(self, scorer: Scorer, batch: Batch) -> Tensor:
        if self._training.loss == "softmax" and self._whole_catalogue_at_each_step:
            return self._softmax_risk(scorer, batch)
        scores, norm = score_with_norm(scorer, batch.context, batch.items)
        loss = softmax_loss if self._training.loss == "softmax" else logistic_loss
        return _weighted(loss(scores, batch.labels), batch).mean() + self._training.l2 * norm

    def _softmax_risk(self, scorer: Scorer, batch: Batch) -> Tensor:
        """The mean loss of every step of the batch's sequences, each against the catalogue."""
        context = batch.context
        states, table = with_factors(scorer).factors(context)
        seen = None
        if self._training.softmax_items == "unseen" and context.steps is not None:
            seen = Seen(context.histories, context.steps)
        return catalogue_softmax_risk(
            states,
            table,
            batch.items[:, 0],
            None if batch.weights is None else batch.weights[:, 0],
            candidates=batch.candidates,
            product_dtype=torch.bfloat16 if self._training.softmax_dtype == "bfloat16" else None,
            seen=seen,
        )

    @property
    def _is_shared(self) -> bool:
        """Whether threads share the sequences of a batch: steps of other models are too short for that."""
        alone = self._workers is None and device_of(self.scorer).type == "cpu"
        return alone and self.scorer.trains_on_sequences and at_once() > 1

    @property
    def _whole_catalogue_at_each_step(self) -> bool:
        """Whether scores of all items would be too many to hold, so that only positives are in a batch."""
        return self.scorer.trains_on_sequences and self._training.pairs == "catalogue"


def _weighted(losses: Tensor, batch: Batch) -> Tensor:
    """The losses of pairs (b, k) or rows (b,), each times its weight."""
    if batch.weights is None:
        return losses
    return losses * (batch.weights if losses.dim() > 1 else batch.weights[:, 0])
