"""Pairs as a scorer scores them, ready for a step: by its own gradients where it has them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from towpath.models.capabilities import HasManualBackward, manual_backward, score_with_norm
from towpath.models.scorer import Context, Scorer
from towpath.training.optimiser import Optimiser

Gradients = Mapping[Tensor, Tensor]


@dataclass(frozen=True)
class ScoredPairs:
    """Scores (b, k) that carry gradients, and the L2 penalty before its weight.

    If the scorer works out its gradients itself, then those of a risk by the scores are all that autograd is
    asked for: the graph ends there.
    """

    context: Context
    items: Tensor
    scores: Tensor
    norm: Tensor
    manual: HasManualBackward | None

    def descend(self, optimiser: Optimiser, risk: Tensor, l2: float) -> Tensor:
        """One step down  risk + l2 * norm, risk a function of the scores; the value before it."""
        loss = risk + l2 * self.norm
        if self.manual is None:
            optimiser.step(loss)
        else:
            optimiser.apply_gradients(self.gradients(risk, l2))
        return loss.detach()

    def gradients(self, risk: Tensor, l2: float) -> Gradients:
        """The gradients of  risk + l2 * norm  by the parameters, where the scorer works them out itself."""
        assert self.manual is not None
        (slopes,) = torch.autograd.grad(risk, self.scores)
        with torch.no_grad():
            return self.manual.gradients(self.context, self.items, slopes, l2)


def score_pairs(scorer: Scorer, context: Context, items: Tensor) -> ScoredPairs:
    """The pairs as they are scored now."""
    manual = manual_backward(scorer, context, items)
    if manual is None:
        return ScoredPairs(context, items, *score_with_norm(scorer, context, items), None)
    with torch.no_grad():
        scores, norm = manual.score_with_norm(context, items)
    return ScoredPairs(context, items, scores.requires_grad_(), norm, manual)


def added(several: Iterable[Gradients]) -> Gradients:
    """The sum of several gradients, which may reach different parameters."""
    total: dict[Tensor, Tensor] = {}
    for gradients in several:
        for parameter, gradient in gradients.items():
            total[parameter] = total[parameter] + gradient if parameter in total else gradient
    return total
