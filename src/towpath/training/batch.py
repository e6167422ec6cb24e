"""What one step of training uses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from towpath.kernels.softmax_loss import Candidates
from towpath.models.scorer import Context
from towpath.rng import Rng


@dataclass(frozen=True)
class Batch:
    """Pairs to be scored, with their labels.

    context: of b users. items: (b, k), or (1, k) where all users share them. labels: (b, k), 1 for positives.
    weights: how much each row (b, 1) or pair (b, k) counts; None: all the same.
    candidates: the items among which a softmax finds the positives of all rows; None: the whole catalogue.
    """

    context: Context
    items: Tensor
    labels: Tensor
    weights: Tensor | None = None
    candidates: Candidates | None = None


class Batches(Protocol):
    """Makes the batches of any epoch, each epoch from generators of its own."""

    def __len__(self) -> int:
        """How many batches an epoch has."""

    def refresh(self) -> None:
        """Get ready for an epoch of training."""

    def epoch(self, number: int, rng: Rng, *, name: str = "") -> Iterator[Batch]:
        """The batches of this epoch, in an order of its own.

        `name` sets apart several passes of one epoch, each with an order and negatives of its own.
        """
