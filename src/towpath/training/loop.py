"""The fit loop: epochs, validation, early stopping, checkpoints. Every method trains through it."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from towpath.errors import TrainingError
from towpath.models.scorer import Scorer
from towpath.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from towpath.training.fit import EpochMetrics, Fit
from towpath.training.learner import Learner
from towpath.training.settings import TrainingSettings

# The number that decides which epoch is best and when to stop.
DECIDES = "validation_hit"


def train(
    learner: Learner,
    validate: Callable[[Scorer], EpochMetrics],
    settings: TrainingSettings,
    *,
    checkpoint: Path | None = None,
    watch: Callable[[EpochMetrics], None] | None = None,
) -> Fit:
    """The fit after early stopping, with the best epoch's parameters of all players.

    With a checkpoint path, the state is kept there after every epoch, and a run that finds one goes on
    from it to the same floats that it would have reached undisturbed.
    """
    progress = _start(learner, validate, checkpoint)
    while (reason := _stop_reason(progress, settings)) is None:
        number = len(progress.history) + 1
        began = time.perf_counter()
        row: EpochMetrics = {"epoch": number, **learner.epoch(number)}
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
    return Fit(learner.scorer, progress.history, progress.best_epoch, reason, progress.auxiliary_state)


def _start(learner: Learner, validate: Callable[[Scorer], EpochMetrics], checkpoint: Path | None) -> Progress:
    if checkpoint is not None and checkpoint.exists():
        progress = load_checkpoint(checkpoint)
        learner.load_state(progress.learner)
        return progress
    # A start in closed form may be better than anything that training makes of it.
    return _best_now((), 0, learner, validate(learner.scorer)[DECIDES])


def _after(progress: Progress, row: EpochMetrics, learner: Learner) -> Progress:
    history = (*progress.history, row)
    if row[DECIDES] > progress.best_score:
        return _best_now(history, int(row["epoch"]), learner, row[DECIDES])
    return replace(progress, history=history, learner=learner.state())


def _best_now(history: tuple[EpochMetrics, ...], epoch: int, learner: Learner, score: float) -> Progress:
    """Progress whose best epoch is the last one."""
    best = {name: tensor.detach().clone() for name, tensor in learner.scorer.state_dict().items()}
    return Progress(history, epoch, score, learner.state(), best, learner.auxiliary_state())


def _stop_reason(progress: Progress, settings: TrainingSettings) -> str | None:
    """Why training is over, as a sentence; None while it is not."""
    done = len(progress.history)
    kept = f"epoch {progress.best_epoch}" if progress.best_epoch else "the start"
    if done - progress.best_epoch > settings.patience:
        return f"validation Hit@10 has not risen for {done - progress.best_epoch} epochs; {kept} is kept"
    if done >= settings.epochs:
        return f"all {settings.epochs} epochs are done; {kept} is kept"
    return None


def _refuse_broken_numbers(row: EpochMetrics, progress: Progress) -> None:
    for name, value in row.items():
        if not math.isfinite(value):
            last = progress.history[-1].get(name) if progress.history else None
            raise TrainingError(
                f"{name} became {value} in epoch {int(row['epoch'])} (last finite value: {last}); "
                "lower learning_rate or set clip_norm."
            )
