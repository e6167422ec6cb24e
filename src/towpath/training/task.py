"""What a method is given to work on."""

from dataclasses import dataclass

from towpath.data.interactions import Interactions
from towpath.models.scorer import Scorer
from towpath.rng import Rng
from towpath.training.settings import TrainingSettings


@dataclass(frozen=True)
class TrainingTask:
    """The filled model to train, what to train it on, the settings of the fit loop, and randomness.

    `plain` are the settings of the fit loop that plain training of the same model would have, for methods
    that begin with it; None: no others.
    """

    scorer: Scorer
    train: Interactions
    training: TrainingSettings
    rng: Rng
    plain: TrainingSettings | None = None
