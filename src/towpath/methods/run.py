"""From a split and a recipe to a fit."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from towpath.data.split import Split
from towpath.evaluation.evaluate import Validator
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_named
from towpath.models.capabilities import NeedsPretraining
from towpath.models.registry import model_type
from towpath.models.scorer import Scorer, sizes_of
from towpath.rng import Rng
from towpath.training.fit import EpochMetrics, Fit
from towpath.training.loop import train
from towpath.training.plain import PlainLearner
from towpath.training.task import TrainingTask


def fit(
    split: Split,
    recipe: Recipe,
    *,
    checkpoint: Path | None = None,
    watch: Callable[[EpochMetrics], None] | None = None,
) -> Fit:
    """Train the recipe's model by its method; validation chooses the epoch, test is never looked at.

    With a checkpoint path, progress is kept there after every epoch and found again: a run that was killed
    goes on to the same floats. `watch` is called with every epoch's row.
    """
    resolved = recipe.resolve()
    rng = Rng(recipe.seed)
    sizes = sizes_of(split.train)
    scorer = model_type(recipe.model)(resolved.model, sizes)
    scorer.initialise(split.train, rng)
    if not any(p.requires_grad for p in scorer.parameters()):
        return Fit(scorer, (), 0, "the model is whole from its start; there is nothing to train")
    task = TrainingTask(scorer, split.train, resolved.training, rng)
    if checkpoint is None or not checkpoint.exists():
        _pretrain(task)
    learner = method_named(recipe.method).learner(task, resolved.method)
    return train(learner, _validation(split), resolved.training, checkpoint=checkpoint, watch=watch)


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
            learner.epoch(epoch)
    task.scorer.pretrained()


def _validation(split: Split) -> Callable[[Scorer], EpochMetrics]:
    validator = Validator(split, k=10)
    return lambda scorer: {f"validation_{name}": value for name, value in validator(scorer).items()}
