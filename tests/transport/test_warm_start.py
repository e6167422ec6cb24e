from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from contracts import SCORERS
from small import small_split
from towpath.experiments.paper import columns
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import build
from towpath.models.scorer import Scorer, sizes_of
from towpath.rng import Rng
from towpath.serving.production import refit
from towpath.training.checkpoint import Progress
from towpath.training.fit import EpochMetrics, Fit
from towpath.training.loop import train
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask
from towpath.transport.learner import transport_learner
from towpath.transport.settings import TransportSettings
from towpath.transport.warm_start import WarmStartLearner, epochs_by_part

SPLIT = small_split()
FAST = {"batch_size": 64, "embedding_dim": 8, "epochs": 3, "list_length": 5, "hard_negative_depth": 12}
PLAIN = {name: value for name, value in FAST.items() if name != "list_length"}
TIMES = ("seconds", "validation_seconds")


class StoppedError(Exception):
    """Stands for kill -9."""


def learner(training: TrainingSettings, **settings: object) -> WarmStartLearner:
    scorer = build("mf", {"embedding_dim": 8}, sizes_of(SPLIT.train))
    scorer.initialise(SPLIT.train, Rng(0))
    task = TrainingTask(scorer, SPLIT.train, training, Rng(0))
    made = transport_learner(task, TransportSettings(list_length=5, **settings))
    assert isinstance(made, WarmStartLearner)
    return made


def scripted(hits: list[float]) -> Callable[[Scorer], EpochMetrics]:
    """Validation that gives these numbers one after the other, the first before training."""
    left = iter(hits)
    return lambda scorer: {"validation_hit": next(left)}


def timeless(fitted: Fit) -> list[EpochMetrics]:
    return [{k: v for k, v in row.items() if k not in TIMES} for row in fitted.history]


def equal(one: Scorer, other: Scorer) -> bool:
    theirs = other.state_dict()
    return all(torch.equal(value, theirs[name]) for name, value in one.state_dict().items())


@pytest.mark.parametrize("model", ["mf", "ncf", "attention"])
def test_until_the_game_begins_it_is_plain_training_float_for_float(model: str) -> None:
    """Attention too, whose plain training has another loss and another rate than its games."""
    chosen = {**SCORERS[model], "batch_size": 64, "epochs": 3}
    plain = fit(SPLIT, Recipe(model, "plain", chosen))
    both = fit(SPLIT, Recipe(model, "transport", chosen | {"list_length": 5, "hard_negative_depth": 12}))
    for ours, theirs in zip(both.history, timeless(plain), strict=False):
        assert {name: ours[name] for name in theirs} == theirs
        assert ours["game"] == 0
    assert [row["game"] for row in both.history] == [0, 0, 0, 1, 1, 1]
    assert all("gap" in row for row in both.history[3:])
    if both.best_epoch <= 3:
        assert equal(plain.scorer, both.scorer)


def test_the_game_begins_when_plain_training_would_stop_and_goes_on_from_its_best_epoch() -> None:
    training = TrainingSettings(batch_size=64, epochs=20, patience=1)
    game = learner(training)
    states: list[dict[str, torch.Tensor]] = []

    def validate(scorer: Scorer) -> EpochMetrics:
        states.append({name: value.clone() for name, value in scorer.state_dict().items()})
        return {"validation_hit": [0.1, 0.2, 0.5, 0.4, 0.3, 0.45, 0.6, 0.2, 0.1][len(states) - 1]}

    begun: list[dict[str, torch.Tensor]] = []
    play = game._game.epoch

    def watched(number: int) -> EpochMetrics:
        begun.append({name: value.clone() for name, value in game.scorer.state_dict().items()})
        assert number == len(begun)  # the game counts its own epochs, and so does its rate
        return play(number)

    game._game.epoch = watched  # type: ignore[method-assign]
    fitted = train(game, validate, training)
    assert [row["game"] for row in fitted.history] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert all(torch.equal(begun[0][name], states[2][name]) for name in begun[0])
    assert {row["game_from"] for row in fitted.history[4:]} == {2}
    assert fitted.best_epoch == 6
    assert fitted.stopped_because == "validation Hit@10 has not risen for 2 epochs; epoch 6 is kept"
    assert epochs_by_part(fitted.history, fitted.best_epoch) == (2, 2)


def test_plain_training_is_kept_where_the_game_is_no_better() -> None:
    training = TrainingSettings(batch_size=64, epochs=2, patience=5)
    game = learner(training)
    fitted = train(game, scripted([0.1, 0.2, 0.5, 0.4, 0.5]), training)
    assert fitted.best_epoch == 2
    assert fitted.stopped_because == "all 4 epochs are done; epoch 2, from before the game, is kept"
    assert fitted.auxiliary_state["w.line"].tolist() == [0, 0, 0]  # w had no say in it
    assert epochs_by_part(fitted.history, fitted.best_epoch) == (2,)


@pytest.mark.parametrize("players", ["margin", "models"])
def test_a_run_that_is_killed_anywhere_resumes_to_the_same_floats(tmp_path: Path, players: str) -> None:
    recipe = Recipe("mf", "transport", FAST | {"players": players, "target_distance": 0.5, "patience": 9})
    whole = fit(SPLIT, recipe)
    for last in range(1, len(whole.history)):
        path = tmp_path / f"{last}.safetensors"

        def stop(row: EpochMetrics, last: int = last) -> None:
            if row["epoch"] == last:
                raise StoppedError

        with suppress(StoppedError):
            fit(SPLIT, recipe, checkpoint=path, watch=stop)
        resumed = fit(SPLIT, recipe, checkpoint=path)
        assert timeless(whole) == timeless(resumed), last
        assert equal(whole.scorer, resumed.scorer), last
        for name, value in whole.auxiliary_state.items():
            assert torch.equal(value, resumed.auxiliary_state[name]), (last, name)


def test_adam_starts_the_game_without_moments_and_at_the_rate_of_the_game() -> None:
    game = learner(TrainingSettings(batch_size=64, learning_rate=0.01))
    before = {name: value.clone() for name, value in game.scorer.state_dict().items()}
    game.epoch(1)
    optimiser = game.optimisers()["f"]
    assert any(bool(tensor.any()) for tensor in optimiser.live_state().values())
    assert game.next_part(Progress(({},), 0, 0.0, before, {}))
    assert not any(bool(tensor.any()) for tensor in optimiser.live_state().values())
    assert optimiser._learning_rate == 0.01
    assert all(torch.equal(value, before[name]) for name, value in game.scorer.state_dict().items())
    assert not game.next_part(Progress(({},), 0, 0.0, before, {}))  # there is no third part


def test_the_game_does_not_repeat_the_draws_of_the_first_plain_epochs() -> None:
    game = learner(TrainingSettings(batch_size=64))
    first = [next(iter(part._batches.epoch(1, part._rng))).items for part in (game._plain, game._game)]
    assert not torch.equal(*first)


def test_refit_repeats_the_plain_epochs_that_count_and_those_of_the_game() -> None:
    recipe = Recipe("mf", "transport", FAST | {"epochs": 2})
    row = {"epoch": 0.0, "validation_hit": 0.0}
    plain, played = row | {"game": 0.0}, row | {"game": 1.0, "game_from": 1.0}
    fitted = fit(SPLIT, recipe)
    chosen = Fit(fitted.scorer, (plain, plain, played, played), 4, "", recipe=recipe)
    assert [row["game"] for row in refit(chosen, SPLIT).history] == [0, 1, 1]
    before = Fit(fitted.scorer, (plain, plain, played, played), 2, "", recipe=recipe)
    assert [row["game"] for row in refit(before, SPLIT).history] == [0, 0]


def test_a_recipe_knows_how_plain_training_would_be_set() -> None:
    resolved = Recipe("attention", "transport", {"epochs": 7, "dropout": 0.1}).resolve()
    assert (resolved.training.loss, resolved.training.hard_negatives) == ("logistic", 1)
    assert resolved.plain == Recipe("attention", "plain", {"epochs": 7}).resolve().training


def test_the_columns_of_the_paper_play_from_the_start() -> None:
    """Their stored results were, so that another default must not change what they are."""
    tables = (columns.MAIN, columns.MIXES, columns.WIDE_DEEP)
    recipes = [recipe for table in tables for recipe in table.values() if recipe.method == "transport"]
    assert len(recipes) >= 10
    assert {recipe.resolved()["settings"]["warm_epochs"] for recipe in recipes} == {1}
