"""The fit loop: epochs, validation, early stopping, checkpoints. Every method trains through it."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from torch import Tensor

from towpath.errors import TrainingError
from towpath.models.scorer import Scorer
from towpath.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from towpath.training.fit import Fit, Row
from towpath.training.settings import TrainingSettings

# The number that decides which epoch is best and when to stop.
DECIDES = "validation_hit"


class Learner(Protocol):
    """Something that gets better by epochs: one player or several."""

    @property
    def scorer(self) -> Scorer:
        """The model that will be deployed."""

    def epoch(self, number: int) -> Row:
        """Train through epoch `number` (from 1) and say how it went."""

    def state(self) -> dict[str, Tensor]:
        """All that later epochs depend on."""

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to a state."""

    def beside(self) -> dict[str, Tensor]:
        """What other players than the scorer have learned; empty where there are none."""


def train(
    learner: Learner,
    validate: Callable[[Scorer], Row],
    settings: TrainingSettings,
    *,
    checkpoint: Path | None = None,
    watch: Callable[[Row], None] | None = None,
) -> Fit:
    """The fit after early stopping, with the best epoch's parameters of all players.

    With a checkpoint path, the state is kept there after every epoch, and a run that finds one goes on
    from it to the same floats that it would have reached undisturbed.
    """
    progress = _start(learner, validate, checkpoint)
    while (reason := _stop_reason(progress, settings, _own_epochs(learner))) is None:
        number = len(progress.history) + 1
        began = time.perf_counter()
        row: Row = {"epoch": number, **learner.epoch(number)}
        trained = time.perf_counter()
        _refuse_broken_numbers(row, progress)  # which player broke is known here, and no longer by its scores
        row |= validate(learner.scorer)
        row |= {"seconds": trained - began, "validation_seconds": time.perf_counter() - trained}
        _refuse_broken_numbers(row, progress)
        progress = _after(progress, row, learner)
        if checkpoint is not None:
            save_checkpoint(checkpoint, progress)
        if watch is not None:
            watch(row)
    learner.scorer.load_state_dict(progress.best)
    learner.scorer.eval()  # what comes out is to be asked, not trained: nothing is dropped any more
    return Fit(learner.scorer, progress.history, progress.best_epoch, reason, progress.beside)


def _start(learner: Learner, validate: Callable[[Scorer], Row], checkpoint: Path | None) -> Progress:
    if checkpoint is not None and checkpoint.exists():
        progress = load_checkpoint(checkpoint)
        learner.load_state(progress.learner)
        return progress
    # A start in closed form may be better than anything that training makes of it.
    return _best_now((), 0, learner, validate(learner.scorer)[DECIDES])


def _after(progress: Progress, row: Row, learner: Learner) -> Progress:
    history = (*progress.history, row)
    if row[DECIDES] > progress.best_score or _own_epochs(learner) is not None:
        return _best_now(history, int(row["epoch"]), learner, row[DECIDES])
    return replace(progress, history=history, learner=learner.state())


def _best_now(history: tuple[Row, ...], epoch: int, learner: Learner, score: float) -> Progress:
    """Progress whose best epoch is the last one."""
    best = {name: tensor.detach().clone() for name, tensor in learner.scorer.state_dict().items()}
    return Progress(history, epoch, score, learner.state(), best, learner.beside())


def _own_epochs(learner: Learner) -> int | None:
    """How many epochs a learner takes that needs no validation to know when to stop; its last one is kept."""
    return getattr(learner, "own_epochs", None)


def _stop_reason(progress: Progress, settings: TrainingSettings, own: int | None) -> str | None:
    """Why training is over, as a sentence; None while it is not."""
    done = len(progress.history)
    kept = f"epoch {progress.best_epoch}" if progress.best_epoch else "the start"
    if done - progress.best_epoch > settings.patience:
        return f"validation Hit@10 has not risen for {done - progress.best_epoch} epochs; {kept} is kept"
    most = settings.epochs if own is None else own
    if done >= most:
        return f"all {most} epochs are done; {kept} is kept"
    return None


def _refuse_broken_numbers(row: Row, progress: Progress) -> None:
    for name, value in row.items():
        if not math.isfinite(value):
            last = progress.history[-1].get(name) if progress.history else None
            raise TrainingError(
                f"{name} became {value} in epoch {int(row['epoch'])} (last finite value: {last}); "
                "lower learning_rate or set clip_norm."
            )
