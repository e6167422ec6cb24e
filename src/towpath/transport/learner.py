"""Which learner plays transport: the library on impressions, or the game of f, w and g."""

from towpath.data.interactions import Interactions
from towpath.models.factorization import Factorization
from towpath.training.learner import Learner
from towpath.training.task import TrainingTask
from towpath.transport.game import TransportLearner
from towpath.transport.impressions.learner import ImpressionLearner
from towpath.transport.impressions.tower import TowerLearner
from towpath.transport.settings import TransportSettings
from towpath.transport.warm_start import WarmStartLearner


def transport_learner(task: TrainingTask, settings: TransportSettings) -> Learner:
    """On impressions where the log has them, otherwise the game; the game too where players were named."""
    if plays_game(task.train, settings):
        from_plain = settings.warm_epochs == "auto"
        return WarmStartLearner(task, settings) if from_plain else TransportLearner(task, settings)
    if isinstance(task.scorer, Factorization):
        return ImpressionLearner(task, settings)
    return TowerLearner(task, settings)


def plays_game(train: Interactions, settings: TransportSettings) -> bool:
    """Whether it is the game of f, w and g that is played on these data."""
    wanted = settings.solver == "game" or settings.players == "models"  # only the game has players
    return wanted or (settings.solver == "auto" and not train.knows_unclicked)
