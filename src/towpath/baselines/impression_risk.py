"""The learner of every method that is no more than another risk on a log of impressions."""

from collections.abc import Callable

import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.models.scorer import Scorer, Settings
from towpath.rng import Rng
from towpath.training.checkpoint import nested, under
from towpath.training.fit import Row
from towpath.training.impressions import ImpressionBatch, ImpressionBatches
from towpath.training.optimiser import Optimiser
from towpath.training.settings import TrainingSettings

# From the scorer and a batch to the risk, one number, and what an L2 penalty charges for.
Risk = Callable[[Scorer, ImpressionBatch], tuple[Tensor, Tensor]]


class NoSettings(Settings):
    """The method has no settings beyond those of the fit loop."""


class ImpressionRiskLearner:
    """Minimises a risk over batches of impressions, plus the L2 penalty."""

    def __init__(
        self, scorer: Scorer, train: Interactions, training: TrainingSettings, risk: Risk, rng: Rng
    ) -> None:
        self.scorer = scorer
        self._training, self._risk, self._rng = training, risk, rng
        self._batches = ImpressionBatches(train, training.negatives, training.batch_size)
        self._optimiser = Optimiser([scorer], training.learning_rate, training.clip_norm)

    def epoch(self, number: int) -> Row:
        """One pass over the impressions."""
        self._optimiser.walk_at(self._training.pace(number))
        self.scorer.train()
        total = torch.zeros(())
        for batch in self._batches.epoch(number, self._rng, self.scorer):
            risk, norm = self._risk(self.scorer, batch)
            loss = risk + self._training.l2 * norm
            self._optimiser.step(loss)
            total += loss.detach()
        return {"loss": float(total) / len(self._batches)}

    def state(self) -> dict[str, Tensor]:
        """The parameters and the optimiser's moments."""
        return nested("scorer", self.scorer.state_dict()) | nested("optimiser", self._optimiser.state())

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to a state."""
        self.scorer.load_state_dict(under("scorer", state))
        self._optimiser.load_state(under("optimiser", state))

    def beside(self) -> dict[str, Tensor]:
        """Nothing: there is one player."""
        return {}
