"""The learner of every method that is no more than another risk on a log of impressions."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from towpath.device import device_of
from towpath.errors import ConfigError
from towpath.models.headed import with_heads
from towpath.models.scorer import Scorer, Settings
from towpath.training.fit import EpochMetrics
from towpath.training.impressions import HardNegatives, ImpressionBatch, ImpressionBatches
from towpath.training.learner import Learner
from towpath.training.optimiser import Optimiser
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

# From the scorer and a batch to the risk, one number, and what an L2 penalty charges for.
Risk = Callable[[Scorer, ImpressionBatch], tuple[Tensor, Tensor]]


class NoSettings(Settings):
    """The method has no settings beyond those of the fit loop."""


class ImpressionRiskLearner(Learner):
    """Minimises a risk over batches of impressions, plus the L2 penalty."""

    def __init__(self, task: TrainingTask, risk: Risk, scorer: Scorer | None = None) -> None:
        self.scorer = scorer or task.scorer
        self._training, self._risk, self._rng = task.training, risk, task.rng
        hard = HardNegatives(self.scorer, task.train, task.training) if task.training.hard_negatives else None
        self._batches = ImpressionBatches(task.train, task.training.negatives, task.training.batch_size, hard)
        self._optimiser = Optimiser([self.scorer], task.training.learning_rate, task.training.clip_norm)

    def optimisers(self) -> dict[str, Optimiser]:
        """That of the scorer."""
        return {"f": self._optimiser}

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the impressions."""
        self._optimiser.set_lr_scale(self._training.lr_scale(number))
        self.scorer.train()
        device = device_of(self.scorer)
        total = torch.zeros(())
        for batch in self._batches.epoch(number, self._rng, self.scorer.history_length):
            risk, norm = self._risk(self.scorer, batch.to(device))
            loss = risk + self._training.l2 * norm
            self._optimiser.step(loss)
            total += loss.detach().cpu()
        return {"loss": float(total) / len(self._batches)}


def refuse_hard_negatives(training: TrainingSettings, settings: Settings) -> None:
    """Nothing, unless hard negatives are asked of a method that draws no negatives at all."""
    if training.hard_negatives:
        raise ConfigError(
            "The method 'shown' learns from what was shown alone and draws no negatives; leave out "
            "hard_negatives."
        )


def by_risk(risk: Callable[..., tuple[Tensor, Tensor]], *, heads: int = 0) -> Callable[..., Learner]:
    """What makes a learner by a risk on impressions, with the settings of its method where it has some."""

    def learner(task: TrainingTask, settings: Settings) -> Learner:
        scorer = with_heads(task.scorer, heads, "product") if heads else None
        bound = partial(risk, settings=settings) if type(settings).model_fields else risk
        return ImpressionRiskLearner(task, bound, scorer)

    return learner
