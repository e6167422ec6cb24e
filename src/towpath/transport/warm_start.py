"""The game after plain training: f first learns as the method `plain` would, then w and g join."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor, nn

from towpath.training.checkpoint import Progress
from towpath.training.fit import EpochMetrics
from towpath.training.learner import Learner
from towpath.training.optimiser import Optimiser
from towpath.training.plain import PlainLearner
from towpath.training.task import TrainingTask
from towpath.transport.game import TransportLearner
from towpath.transport.settings import TransportSettings

# In a row of the history: 0 while f learns alone, 1 while the game is played; the epoch it went on from.
PHASE, BEGAN_FROM = "game", "game_from"


class WarmStartLearner(Learner):
    """Two parts of training: plain epochs, float for float those of `plain`, and the game from the best one.

    The ranking of an untrained f says nothing about what it will show, so a game over it is wasted.
    """

    numbers = ("plays", "part_began", "began_from", "penalty")

    def __init__(self, task: TrainingTask, settings: TransportSettings) -> None:
        self.scorer, self._rate = task.scorer, task.training.learning_rate
        # The game numbers its epochs from 1 too, and must not repeat the draws of the first plain ones.
        self._game = TransportLearner(replace(task, rng=task.rng.child("game")), settings)
        plain = task.plain or task.training
        optimiser = self._game.optimisers()["f"]
        optimiser.start_over(plain.learning_rate)
        self._plain = PlainLearner(replace(task, training=plain), optimiser=optimiser)
        self.plays = self.began_from = 0.0

    @property
    def penalty(self) -> float:
        """The price of distance, which the game may learn."""
        return self._game.penalty

    @penalty.setter
    def penalty(self, value: float) -> None:
        self._game.penalty = value

    def players(self) -> Mapping[str, nn.Module]:
        """Those of the game, which have learned nothing before it begins."""
        return self._game.players()

    def optimisers(self) -> Mapping[str, Optimiser]:
        """Those of the game; f has one for both parts."""
        return self._game.optimisers()

    def epoch(self, number: int) -> EpochMetrics:
        """One pass over the positives: of plain training, or of the game, whose rate starts anew."""
        if not self.plays:
            return {**self._plain.epoch(number), PHASE: 0.0}
        self._game.epochs_before = int(self.part_began)
        row = self._game.epoch(number - self._game.epochs_before)
        return {**row, PHASE: 1.0, BEGAN_FROM: self.began_from}

    def next_part(self, progress: Progress) -> bool:
        """Let w and g join; f goes on from its best epoch, and Adam starts without moments."""
        if self.plays:
            return False
        self.scorer.load_state_dict(progress.best)
        self.plays, self.part_began = 1.0, float(len(progress.history))
        self.began_from = float(progress.best_epoch)
        self.optimisers()["f"].start_over(self._rate)
        return True

    def name_of(self, epoch: int) -> str:
        """An epoch from before the game is called so."""
        alone = self.plays and epoch <= self.part_began
        return f"epoch {epoch}, from before the game," if alone else f"epoch {epoch}"

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go back to a state, of either part."""
        if float(state["number.plays"]) and not self.plays:
            self.optimisers()["f"].start_over(self._rate)
        super().load_state(state)


def epochs_by_part(history: Sequence[EpochMetrics], best_epoch: int) -> tuple[int, ...]:
    """How many epochs of each part of training led to the best one: what trains a model like it anew.

    The game went on from the best plain epoch, so that later plain ones are left out.

    >>> plain, game = {"game": 0.0}, {"game": 1.0, "game_from": 2.0}
    >>> history = [plain, plain, plain, game, game]
    >>> epochs_by_part(history, 5), epochs_by_part(history, 3)
    ((2, 2), (3,))
    """
    best = history[best_epoch - 1] if best_epoch else {}
    if BEGAN_FROM not in best:
        return (best_epoch,)
    alone = sum(row.get(PHASE) == 0 for row in history)
    return int(best[BEGAN_FROM]), best_epoch - alone
