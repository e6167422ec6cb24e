"""From a split and a recipe to a fit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from towpath.data.split import Split
from towpath.device import device_named
from towpath.errors import ConfigError
from towpath.evaluation.evaluate import Validator
from towpath.memory import refuse_beyond
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_named
from towpath.models.capabilities import NeedsPretraining
from towpath.models.registry import model_type
from towpath.models.scorer import Scorer, sizes_of
from towpath.models.sharded_factorization import ShardedFactorization
from towpath.rng import Rng
from towpath.training.fit import EpochMetrics, Fit
from towpath.training.loop import train, train_for
from towpath.training.plain import PlainLearner
from towpath.training.task import TrainingTask

_BYTES_PER_EVENT = 24


@dataclass(frozen=True)
class FixedEpochs:
    """Training for a given number of epochs, without validation."""

    epochs: int | tuple[int, ...]  # in all, or of each part of training (`Learner.next_part`)
    start: Callable[[Scorer], None] | None = None  # fills the scorer with what an earlier one has learned


def fit(
    split: Split,
    recipe: Recipe,
    *,
    checkpoint: Path | None = None,
    watch: Callable[[EpochMetrics], None] | None = None,
    fixed: FixedEpochs | None = None,
    sharded: bool = False,
) -> Fit:
    """Train the recipe's model by its method; validation chooses the epoch, test is never looked at.

    With `fixed` it is trained for that many epochs instead, and the split needs no validation part.

    With a checkpoint path, progress is kept there after every epoch and found again: a run that was killed
    goes on to the same floats. `watch` is called with every epoch's row. With `sharded` the processes that
    train together spread the tables over themselves, and the fit of the first one has the whole model.
    """
    resolved = recipe.resolve()
    rng = Rng(recipe.seed)
    sizes = sizes_of(split.train)
    scorer = (ShardedFactorization if sharded else model_type(recipe.model))(resolved.model, sizes)
    scorer.initialise(split.train, rng)
    scorer.to(device_named(recipe.device))  # it starts the same everywhere: drawn on the CPU, then moved
    if not any(p.requires_grad for p in scorer.parameters()):
        done = Fit(scorer, (), 0, "the model is whole from its start; there is nothing to train")
        return replace(done, recipe=recipe)
    _refuse_large(scorer, split, recipe)
    task = TrainingTask(scorer, split.train, resolved.training, rng, resolved.plain)
    if checkpoint is None or not checkpoint.exists():
        _prepare(task, fixed)
    learner = method_named(recipe.method).learner(task, resolved.method)
    if fixed is not None:
        parts = fixed.epochs if isinstance(fixed.epochs, tuple) else (fixed.epochs,)
        done = train_for(learner, parts, checkpoint=checkpoint, watch=watch)
    else:
        validator = Validator(split, k=10)
        scorer.remarks = (*scorer.remarks, *validator.remarks)
        done = train(learner, _by_epoch(validator), resolved.training, checkpoint=checkpoint, watch=watch)
    if isinstance(scorer, ShardedFactorization):
        done = replace(done, scorer=scorer.gathered() or scorer)
    return replace(done, recipe=recipe)


def refuse_unshardable(recipe: Recipe) -> None:
    """Nothing, unless tables that are spread over several processes cannot be trained by this recipe."""
    resolved = recipe.resolve()
    reasons = {
        f"the model is {recipe.model_name}": recipe.model_name == "mf",
        f"the method is {recipe.method_name}": recipe.method_name in ("plain", "transport"),
        "w and g are models": getattr(resolved.method, "players", "margin") == "margin",
        "the library of an impression log is wanted": getattr(resolved.method, "solver", "game") != "library",
        f"pairs={resolved.training.pairs}": resolved.training.pairs == "sampled",
        "the vectors do not start at random": all(
            getattr(resolved.model, name, "random") == "random" for name in ("start", "item_start")
        ),
        f"the device is {recipe.device}": recipe.device == "cpu",
    }
    for reason, possible in reasons.items():
        if not possible:
            raise ConfigError(
                "Tables are spread over workers for mf by plain or transport with sampled pairs, from a "
                f"random start, on the CPU, and {reason}; use --tables copied."
            )


def _refuse_large(scorer: Scorer, split: Split, recipe: Recipe) -> None:
    """Nothing, unless what training adds to the model cannot stay below the limit of memory.

    That is two moments and the best epoch's copy of every parameter, and of every event the keys by which
    negatives are told apart and the columns of an epoch.
    """
    parameters = sum(p.numel() * p.element_size() for p in scorer.parameters())
    refuse_beyond(
        3 * parameters + _BYTES_PER_EVENT * len(split.train),
        f"Training {recipe.model_name} on {len(split.train):,} events",
        "lower embedding_dim",
    )


def _prepare(task: TrainingTask, fixed: FixedEpochs | None) -> None:
    """Take over what an earlier model has learned, or else train what the model wants trained first."""
    if fixed is not None and fixed.start is not None:
        fixed.start(task.scorer)
    else:
        _pretrain(task)


def _pretrain(task: TrainingTask) -> None:
    """Train the parts that the model wants trained first, each alone as plain training would."""
    if not isinstance(task.scorer, NeedsPretraining):
        return
    epochs, parts = task.scorer.to_pretrain()
    if not epochs:
        return
    for number, part in enumerate(parts):
        own = replace(task, scorer=part, rng=task.rng.child("pretrain", number))
        learner = PlainLearner(own)
        for epoch in range(1, epochs + 1):
            learner.run_epoch(epoch)
    task.scorer.pretrained()


def _by_epoch(validator: Validator) -> Callable[[Scorer], EpochMetrics]:
    return lambda scorer: {f"validation_{name}": value for name, value in validator(scorer).items()}
