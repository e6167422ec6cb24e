"""Players next to f see as much of a history as they look at, and f stays what it is."""

from pathlib import Path
from typing import Any

import pytest
import torch

from small import small_split
from towpath.methods.recipe import Recipe
from towpath.methods.registry import METHODS, method_named
from towpath.methods.run import fit
from towpath.models.attention import AttentionSettings
from towpath.models.players import longest_history
from towpath.models.registry import build
from towpath.models.scorer import sizes_of
from towpath.rng import Rng
from towpath.serving.artifact import artifact_of, load_artifact, save_artifact
from towpath.training.learner import Learner
from towpath.training.task import TrainingTask

SPLIT = small_split()
QUICK = {"batch_size": 64, "epochs": 2, "embedding_dim": 8}
# Each method that has players, with a player that looks back further than f does.
GAMES: dict[str, dict[str, Any]] = {
    "transport": {"players": "models", "g": "attention", "list_length": 5, "warm_epochs": 1},
    "adversarial": {"g": "attention", "warm_epochs": 1},
    "doubly-robust": {"imputation": "attention"},
}


def recipe(method: str, pairs: str = "sampled") -> Recipe:
    return Recipe("mf", method, QUICK | GAMES[method] | {"pairs": pairs, "hard_negatives": 0})


def learner(method: str, pairs: str = "sampled") -> Learner:
    resolved, scorer = (
        recipe(method, pairs).resolve(),
        build("mf", {"embedding_dim": 8}, sizes_of(SPLIT.train)),
    )
    scorer.initialise(SPLIT.train, Rng(0))
    task = TrainingTask(scorer, SPLIT.train, resolved.training, Rng(0))
    return method_named(method).learner(task, resolved.method)


def test_every_method_with_players_is_here() -> None:
    assert set(GAMES) == {name for name, method in METHODS.items() if method.players}


@pytest.mark.parametrize("method", GAMES)
def test_making_a_player_does_not_change_f(method: str) -> None:
    made = learner(method)
    assert made.scorer.history_length == 0
    made.epoch(1)
    assert made.scorer.history_length == 0


@pytest.mark.parametrize(
    ("method", "pairs"), [*((method, "sampled") for method in GAMES), ("transport", "catalogue")]
)
def test_a_batch_holds_what_the_player_looks_at(method: str, pairs: str) -> None:
    made = learner(method, pairs)
    longest = AttentionSettings().history_length
    assert longest_history(made.scorer, *made.players().values()) == longest
    assert all((batch.context.histories >= 0).any() for batch in made._batches.epoch(1, Rng(0)))


def test_f_is_served_as_it_was_trained(tmp_path: Path) -> None:
    done = fit(SPLIT, recipe("transport"))
    save_artifact(artifact_of(done, SPLIT), tmp_path / "a")
    assert load_artifact(tmp_path / "a").scorer.history_length == done.scorer.history_length == 0


def test_the_longest_history_is_that_of_any_model_within() -> None:
    sizes = sizes_of(SPLIT.train)
    short, long = (build("attention", {"history_length": n}, sizes) for n in (3, 7))
    assert longest_history(torch.nn.Linear(1, 1)) == 0
    assert longest_history(short, torch.nn.ModuleList([long])) == 7
