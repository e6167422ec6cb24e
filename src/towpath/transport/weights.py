"""The players of w: positive, bounded weights of training pairs."""

from typing import Protocol

import torch
from torch import Tensor, nn

from towpath.models.scorer import Scorer
from towpath.transport.game_batch import CandidatePairs

# Beyond this a sigmoid's gradient is too small to come back from.
_LOGIT_LIMIT = 8.0


class Weights(Protocol):
    """Anything that weighs pairs."""

    def __call__(self, pairs: CandidatePairs) -> Tensor:
        """A weight within its bounds for each pair: (b, k)."""


def bounded_weight(logits: Tensor, floor: float, ceiling: float) -> Tensor:
    """Weights in (floor, ceiling): floor + (ceiling - floor) * sigmoid(logit), any shape.

    >>> bounded_weight(torch.tensor([0.0]), 0.2, 5.0)
    tensor([2.6000])
    """
    return floor + (ceiling - floor) * torch.sigmoid(logits.clamp(-_LOGIT_LIMIT, _LOGIT_LIMIT))


class MarginWeights(nn.Module):
    """w as a function of the margin m alone: logit = a + b m + c max(m, 0).

    Three numbers cannot memorise pairs: w says how much the score counts, and how much being shown.
    """

    def __init__(self, floor: float, ceiling: float) -> None:
        super().__init__()
        self.floor, self.ceiling = floor, ceiling
        self.line = nn.Parameter(torch.zeros(3))  # a, b, c

    def forward(self, pairs: CandidatePairs) -> Tensor:
        """The weights; equal at the start."""
        offset, slope, bend = self.line
        logits = offset + slope * pairs.margins + bend * pairs.margins.clamp(min=0)
        return bounded_weight(logits, self.floor, self.ceiling)


class ModelWeights(nn.Module):
    """w as a model of who and what the pair is."""

    def __init__(self, scorer: Scorer, floor: float, ceiling: float) -> None:
        super().__init__()
        self.scorer = scorer
        self.floor, self.ceiling = floor, ceiling

    def forward(self, pairs: CandidatePairs) -> Tensor:
        """The weights; nearly equal at the start, when the model's scores are small."""
        return bounded_weight(self.scorer.score(pairs.context, pairs.items), self.floor, self.ceiling)
