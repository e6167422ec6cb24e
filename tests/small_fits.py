"""What the tests of every baseline need: a small split, a factorisation on it, and fits to compare."""

from pathlib import Path

import torch

from small import small_split
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.factorization import Factorization
from towpath.models.registry import build
from towpath.models.scorer import Sizes
from towpath.rng import Rng
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

SPLIT = small_split()
TRAINING = TrainingSettings(batch_size=64, epochs=3)
FAST = {"batch_size": 64, "epochs": 3, "embedding_dim": 8, "patience": 9}


def model(seed: int = 0) -> Factorization:
    scorer = build("mf", {"embedding_dim": 8}, Sizes(SPLIT.train.n_users, SPLIT.train.n_items))
    scorer.initialise(SPLIT.train, Rng(seed))
    assert isinstance(scorer, Factorization)
    return scorer


def copied(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def unchanged(module: torch.nn.Module, before: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def plainly_trained(training: TrainingSettings = TRAINING) -> Factorization:
    """A factorisation after three plain epochs."""
    scorer = model()
    learner = PlainLearner(TrainingTask(scorer, SPLIT.train, training, Rng(0)))
    for number in (1, 2, 3):
        learner.epoch(number)
    return scorer


def same_floats_again(method: str, settings: dict) -> bool:
    """Whether two fits with one seed agree in everything, and another seed differs."""
    one, again, other = (fit(SPLIT, Recipe("mf", method, FAST | settings, seed)) for seed in (0, 0, 1))
    same = unchanged(one.scorer, copied(again.scorer))
    same = same and all(
        torch.equal(one.auxiliary_state[k], again.auxiliary_state[k]) for k in one.auxiliary_state
    )
    return same and not unchanged(one.scorer, copied(other.scorer))


def same_floats_resumed(method: str, settings: dict, folder: Path) -> bool:
    """Whether a fit that stopped after two epochs and went on ends where an undisturbed one ends."""
    checkpoint = folder / "checkpoint.safetensors"
    chosen = FAST | settings
    whole = fit(SPLIT, Recipe("mf", method, chosen | {"epochs": 5}))
    fit(SPLIT, Recipe("mf", method, chosen | {"epochs": 2}), checkpoint=checkpoint)
    resumed = fit(SPLIT, Recipe("mf", method, chosen | {"epochs": 5}), checkpoint=checkpoint)
    timeless = [
        [{k: v for k, v in row.items() if "seconds" not in k} for row in found.history]
        for found in (whole, resumed)
    ]
    same = unchanged(whole.scorer, copied(resumed.scorer)) and timeless[0] == timeless[1]
    return same and all(
        torch.equal(whole.auxiliary_state[k], resumed.auxiliary_state[k]) for k in whole.auxiliary_state
    )
