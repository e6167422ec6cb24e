"""What comes out of training."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter
from torch import Tensor

from towpath.models.scorer import Scorer

# One epoch's numbers: epoch, seconds, loss, validation metrics and whatever the method watches.
EpochMetrics = dict[str, float]


def parse_history(text: bytes) -> list[EpochMetrics]:
    """The rows of epochs in a JSON list; raises for anything else."""
    return TypeAdapter(list[EpochMetrics]).validate_json(text)


@dataclass(frozen=True)
class Fit:
    """A trained scorer, how it got there (one row an epoch) and why training stopped.

    `auxiliary_state` holds what other players learned, kept for analysis; it takes no part in scoring.
    """

    scorer: Scorer
    history: tuple[EpochMetrics, ...]
    best_epoch: int
    stopped_because: str
    auxiliary_state: Mapping[str, Tensor] = field(default_factory=dict)
    recipe: object = None  # the Recipe that was followed, which belongs to a layer below
    on_everything: bool = False  # whether all parts of the split were trained on, so that none can test it
