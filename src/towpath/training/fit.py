"""What comes out of training."""

from dataclasses import dataclass

from towpath.models.scorer import Scorer

# One epoch's numbers: epoch, seconds, loss, validation metrics and whatever the method watches.
Row = dict[str, float]


@dataclass(frozen=True)
class Fit:
    """A trained scorer, how it got there (one row an epoch) and why training stopped."""

    scorer: Scorer
    history: tuple[Row, ...]
    best_epoch: int
    stopped_because: str
