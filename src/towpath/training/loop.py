"""The fit loop: epochs, validation, early stopping, checkpoints. Every method trains through it."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from towpath.errors import TrainingError
from towpath.memory import refuse_exceeded
from towpath.models.scorer import Scorer
from towpath.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from towpath.training.distributed import leads
from towpath.training.fit import EpochMetrics, Fit
from towpath.training.learner import Learner
from towpath.training.settings import TrainingSettings
from towpath.training.sharded_checkpoint import load_shards, save_shards

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
    while (reason := _stop_reason(progress, settings, learner)) is None:
        row = _epoch(learner, progress, validate)
        progress = _after(progress, row, learner)
        _keep(checkpoint, progress, learner)
        if watch is not None:
            watch(row)
    learner.scorer.load_state_dict(progress.best)
    learner.scorer.eval()  # what comes out is to be asked, not trained: nothing is dropped any more
    return Fit(learner.scorer, progress.history, progress.best_epoch, reason, progress.auxiliary_state)


def train_for(
    learner: Learner,
    parts: Sequence[int],
    *,
    checkpoint: Path | None = None,
    watch: Callable[[EpochMetrics], None] | None = None,
) -> Fit:
    """The fit after exactly so many epochs of each part: nothing is validated, and the last epoch is kept."""
    progress = _resumed(learner, checkpoint) or _last_now((), learner)
    first, epochs = parts[0], sum(parts)
    while len(progress.history) < epochs:
        if len(progress.history) == first:
            learner.next_part(progress)
        row = _epoch(learner, progress, lambda scorer: {})
        progress = _last_now((*progress.history, row), learner)
        _keep(checkpoint, progress, learner)
        if watch is not None:
            watch(row)
    learner.scorer.eval()
    reason = f"all {epochs} epochs that were asked for are done"
    return Fit(learner.scorer, progress.history, progress.best_epoch, reason, progress.auxiliary_state)


def _epoch(learner: Learner, progress: Progress, validate: Callable[[Scorer], EpochMetrics]) -> EpochMetrics:
    """The row of the next epoch, trained and validated."""
    number = len(progress.history) + 1
    began = time.perf_counter()
    row: EpochMetrics = {"epoch": number, **learner.run_epoch(number)}
    trained = time.perf_counter()
    _refuse_broken_numbers(row, progress)  # which player broke is known here, and no longer by its scores
    row |= validate(learner.scorer)
    refuse_exceeded("Training", "lower embedding_dim or batch_size")
    row |= {"seconds": trained - began, "validation_seconds": time.perf_counter() - trained}
    _refuse_broken_numbers(row, progress)
    return row


def _start(learner: Learner, validate: Callable[[Scorer], EpochMetrics], checkpoint: Path | None) -> Progress:
    progress = _resumed(learner, checkpoint)
    if progress is not None:
        return progress
    # A start in closed form may be better than anything that training makes of it.
    return _best_now((), 0, learner, validate(learner.scorer)[DECIDES], {})


def _resumed(learner: Learner, checkpoint: Path | None) -> Progress | None:
    """The progress in the checkpoint, the learner back in its state; None where there is none."""
    if checkpoint is not None and learner.sharded_rows():
        shards = checkpoint.with_suffix("")
        return load_shards(shards, learner) if shards.exists() else None
    if checkpoint is None or not checkpoint.exists():
        return None
    found = load_checkpoint(checkpoint)
    learner.load_state(found.learner)
    return found.progress


def _keep(checkpoint: Path | None, progress: Progress, learner: Learner) -> None:
    """Write where to go on from: by all processes if each has some rows of the tables, else by the first."""
    if checkpoint is None:
        return
    if learner.sharded_rows():
        save_shards(checkpoint.with_suffix(""), progress, learner)
    elif leads():
        save_checkpoint(checkpoint, progress, learner.live_state())


def _after(progress: Progress, row: EpochMetrics, learner: Learner) -> Progress:
    history = (*progress.history, row)
    if row[DECIDES] > progress.best_score or learner.own_epochs is not None:
        return _best_now(history, int(row["epoch"]), learner, row[DECIDES], progress.best)
    return replace(progress, history=history)


def _best_now(
    history: tuple[EpochMetrics, ...], epoch: int, learner: Learner, score: float, before: dict[str, Tensor]
) -> Progress:
    """Progress whose best epoch is the last one; its copy takes the room of the best one before."""
    best = {}
    for name, tensor in learner.scorer.state_dict().items():
        room = before.get(name)
        best[name] = tensor.detach().clone() if room is None else room.copy_(tensor)
    return Progress(history, epoch, score, best, learner.auxiliary_state())


def _last_now(history: tuple[EpochMetrics, ...], learner: Learner) -> Progress:
    """Progress that keeps the last epoch whatever it is like, so the scorer needs no copy."""
    return Progress(history, len(history), 0.0, learner.scorer.state_dict(), learner.auxiliary_state())


def _stop_reason(progress: Progress, settings: TrainingSettings, learner: Learner) -> str | None:
    """Why training is over, as a sentence; None while it is not, or the learner has another part."""
    reason = _end_of_part(progress, settings, learner)
    return None if reason and learner.next_part(progress) else reason


def _end_of_part(progress: Progress, settings: TrainingSettings, learner: Learner) -> str | None:
    """Why this part of training is over."""
    done, began = len(progress.history), int(learner.part_began)
    kept = learner.name_of(progress.best_epoch) if progress.best_epoch else "the start"
    stalled = done - max(progress.best_epoch, began)
    if stalled > settings.patience:
        return f"validation Hit@10 has not risen for {stalled} epochs; {kept} is kept"
    most = began + settings.epochs if learner.own_epochs is None else learner.own_epochs
    if done >= most:
        return f"all {most} epochs are done; {kept} is kept"
    return None


def _refuse_broken_numbers(row: EpochMetrics, progress: Progress) -> None:
    for name, value in row.items():
        if not math.isfinite(value):
            last = progress.history[-1].get(name) if progress.history else None
            raise TrainingError(
                f"{name} became {value} in epoch {int(row['epoch'])} (last finite value: {last}); "
                "lower learning_rate or set clip_norm."
            )
