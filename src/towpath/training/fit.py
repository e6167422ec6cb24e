"""What comes out of training."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from towpath.models.scorer import Scorer

# One epoch's numbers: epoch, seconds, loss, validation metrics and whatever the method watches.
Row = dict[str, float]


@dataclass(frozen=True)
class Fit:
    """A trained scorer, how it got there (one row an epoch) and why training stopped.

    `beside` holds what other players learned, kept for analysis; it takes no part in scoring.
    """

    scorer: Scorer
    history: tuple[Row, ...]
    best_epoch: int
    stopped_because: str
    beside: Mapping[str, Tensor] = field(default_factory=dict)
