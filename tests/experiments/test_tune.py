"""A search over real fits: honest, repeated by nobody, stopped by nothing but Ctrl-C."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from small import small_split
from towpath.errors import ArtifactError, ConfigError, TrainingError
from towpath.evaluation.evaluate import evaluate
from towpath.experiments import tune as module
from towpath.experiments.pool import Work
from towpath.experiments.trials import Trial, read_best, stored_trials
from towpath.experiments.tune import Tuned, Tuning, published_grid, tune
from towpath.methods.recipe import Recipe
from towpath.methods.registry import METHODS
from towpath.methods.run import fit
from towpath.models.registry import MODELS, is_trainable

SPLIT = small_split()
QUICK = {"epochs": 2, "embedding_dim": 4, "batch_size": 256}
GRID = {"l2": (0.0, 0.1), "learning_rate": (0.01, 0.05)}
TUNING = Tuning(Recipe("mf", settings=QUICK), GRID)


class Killed(BaseException):
    """Stands for whatever ends a process."""


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, most: int = 1000) -> Iterator[list[Recipe]]:
    """The recipes that are fitted inside the block; after `most` of them the process is killed."""
    fitted: list[Recipe] = []

    def watched(split, recipe):
        if len(fitted) == most:
            raise Killed
        fitted.append(recipe)
        return fit(split, recipe)

    with monkeypatch.context() as patch:
        patch.setattr(module, "fit", watched)
        yield fitted


def scores(tuned: Tuned) -> list[tuple[dict[str, object], float]]:
    return [(dict(candidate.values), candidate.mean("hit")) for candidate in tuned.candidates]


def test_a_score_is_what_validation_says_of_the_fit() -> None:
    tuned = tune(SPLIT, TUNING)
    fitted = fit(SPLIT, tuned.recipe)
    evaluated = evaluate(fitted.scorer, SPLIT, on="validation").metrics()
    (trial,) = tuned.best.trials
    assert trial.metrics == {"hit": evaluated["hit"], "ndcg": evaluated["ndcg"]}
    assert (trial.epochs, trial.best_epoch) == (len(fitted.history), fitted.best_epoch)
    assert tuned.best.mean("hit") == max(score for _, score in scores(tuned))
    assert tuned.candidates[0].values == {"l2": 0.0015, "learning_rate": 0.003}  # the defaults come first
    assert tuned.recipe.settings == {**QUICK, **tuned.best.values}


def test_the_test_part_is_never_looked_at() -> None:
    random = replace(SPLIT, test=SPLIT.test.where(SPLIT.test.users < 0))
    assert len(random.test) == 0
    assert scores(tune(random, TUNING)) == scores(tune(SPLIT, TUNING))


def test_the_metric_decides_and_seeds_are_averaged() -> None:
    tuned = tune(SPLIT, replace(TUNING, metric="ndcg", seeds=(3, 4)))
    assert all([trial.seed for trial in candidate.trials] == [3, 4] for candidate in tuned.candidates)
    one = tuned.best
    assert one.mean("ndcg") == pytest.approx(sum(t.metrics["ndcg"] for t in one.trials) / 2)
    assert one.mean("ndcg") == max(candidate.mean("ndcg") for candidate in tuned.candidates)


def test_a_closed_form_is_fitted_once_whatever_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as fitted:
        tuned = tune(SPLIT, Tuning(Recipe("ease"), {"ridge": (1, 10, 10.0)}, seeds=(0, 1)))
    assert [recipe.settings["ridge"] for recipe in fitted] == [800.0, 1.0, 10.0]
    assert [candidate.values["ridge"] for candidate in tuned.candidates] == [800.0, 1.0, 10.0]


@pytest.mark.parametrize("search", ["coordinate", "optuna"])
def test_equal_recipes_are_fitted_once(search, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as fitted:
        tuned = tune(SPLIT, replace(TUNING, search=search, trials=30))
    keys = [json.dumps(recipe.resolved()) for recipe in fitted]
    assert len(keys) == len(set(keys)) == len(tuned.candidates) <= 9


@pytest.mark.parametrize("search", ["coordinate", "optuna"])
def test_killed_and_asked_again_only_what_is_missing_is_fitted(
    search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = replace(TUNING, search=search, trials=8)
    whole = tune(SPLIT, tuning, work=Work(folder=tmp_path / "whole"))
    done: list[Recipe] = []
    for most in (0, 1, 2, 100):
        with counted(monkeypatch, most) as fitted:
            try:
                again = tune(SPLIT, tuning, work=Work(folder=tmp_path / "killed"))
            except Killed:
                assert not (tmp_path / "killed" / "best.json").exists()
        done += fitted
    assert len(done) == len(stored_trials(tmp_path / "killed")) == len(whole.candidates)
    assert scores(again) == scores(whole)
    assert read_best(tmp_path / "killed") == read_best(tmp_path / "whole")


def test_a_wider_grid_goes_on_in_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work[Trial](folder=tmp_path / "search")
    tune(SPLIT, replace(TUNING, grid={"l2": (0.0, 0.1)}), work=work)
    with counted(monkeypatch) as fitted:
        tuned = tune(SPLIT, replace(TUNING, grid={"l2": (0.0, 0.1, 0.3)}), work=work)
    assert [recipe.settings["l2"] for recipe in fitted] == [0.3]
    assert len(tuned.candidates) == 4


def test_a_fit_that_breaks_down_is_a_failed_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(split, recipe):
        if recipe.settings["learning_rate"] != 0.003:
            raise TrainingError("loss became nan in epoch 1; lower learning_rate.")
        return fit(split, recipe)

    monkeypatch.setattr(module, "fit", breaks)
    heard: list[Trial] = []
    tuned = tune(SPLIT, TUNING, work=Work(folder=tmp_path / "search", on_result=heard.append))
    assert tuned.best.values["learning_rate"] == 0.003
    broken = [trial for trial in heard if trial.failed]
    assert [trial.settings["learning_rate"] for trial in broken] == [0.01, 0.05]
    assert tuned.ranked[-1].failed == "loss became nan in epoch 1; lower learning_rate."
    assert [trial.failed for trial in stored_trials(tmp_path / "search")] == [trial.failed for trial in heard]


def test_if_nothing_can_be_trained_the_first_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(split, recipe):
        raise TrainingError("loss became nan.")

    monkeypatch.setattr(module, "fit", breaks)
    with pytest.raises(TrainingError, match="None of 5 candidates could be trained; the first: loss became"):
        tune(SPLIT, TUNING, work=Work(folder=tmp_path / "search"))
    assert not (tmp_path / "search" / "best.json").exists()


def test_settings_that_do_not_go_together_are_told_and_passed_over() -> None:
    grid = {"negatives": (1, 3), "hard_negatives": (0, 2)}
    few = QUICK | {"negatives": 3}
    tuned = tune(SPLIT, Tuning(Recipe("mf", settings=few), grid, search="optuna", trials=16))
    told = {tuple(c.values.values()): c.failed for c in tuned.candidates}
    assert told.keys() == {(1, 0), (1, 2), (3, 0), (3, 2)}
    assert "hard_negatives (2) cannot exceed negatives (1)" in told.pop((1, 2))
    assert set(told.values()) == {None}
    assert tuned.best.failed is None


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"grid": {"l3": (1,)}}, "did you mean 'l2'"),
        ({"grid": {"l2": (0.1, -1)}}, "l2 cannot be -1"),
        ({"metric": "hits"}, "did you mean 'hit'"),
        ({"search": "grid"}, "no search 'grid'"),
        ({"seeds": ()}, "at least one seed"),
        ({"recipe": Recipe("popularity")}, "nothing to search for popularity by plain"),
        ({"recipe": Recipe("ease", settings={"ridge": 3})}, "or all of it is set"),
    ],
)
def test_what_cannot_be_searched_is_refused_at_the_door(asked, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        replace(TUNING, **{"grid": {}, **asked})


def test_what_is_set_is_not_searched_unless_the_grid_names_it() -> None:
    recipe = Recipe("mf", settings={"l2": 0.5})
    assert set(Tuning(recipe).searched) == {"learning_rate"}
    both = Tuning(recipe, {"l2": (0.1,)})
    assert (both.searched, both.start) == ({"l2": (0.1, 0.5)}, {"l2": 0.5})


@pytest.mark.parametrize("method", METHODS)
def test_every_published_grid_can_be_searched(method: str) -> None:
    model = next(iter(METHODS[method].models or ("mf",)))
    grid = published_grid(Recipe(model, method))
    assert set(grid) == set(METHODS[method].grid)
    assert Tuning(Recipe(model, method), grid).searched.keys() == grid.keys()


@pytest.mark.parametrize("model", MODELS)
def test_a_model_brings_its_own_grid(model: str) -> None:
    grid = published_grid(Recipe(model))
    assert set(MODELS[model].grid) <= set(grid)
    assert ("learning_rate" in grid) is is_trainable(model)


def test_the_end_of_a_grid_is_pointed_at() -> None:
    trials = tune(SPLIT, replace(TUNING, grid={"l2": (0.0, 0.1), "start": ("random",)})).candidates
    values = {0.0: True, 0.0015: False, 0.1: True}
    for candidate in trials:
        tuned = Tuned(replace(TUNING, grid={"l2": (0.0, 0.1), "start": ("random",)}), (candidate,))
        assert tuned.at_the_end() == (["l2"] if values[candidate.values["l2"]] else [])


def test_a_folder_is_for_one_model_method_and_split(tmp_path: Path) -> None:
    work = Work[Trial](folder=tmp_path / "search")
    small = Tuning(Recipe("ease"), {"ridge": (1,)})
    tune(SPLIT, small, work=work)
    with pytest.raises(ConfigError, match="is a search with model 'ease'"):
        tune(SPLIT, TUNING, work=work)
    with pytest.raises(ConfigError, match="other data or another split"):
        tune(small_split(seed=1), small, work=work)
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match=r"has no tune\.json"):
        tune(SPLIT, small, work=Work(folder=tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"search", "thesis.txt"}


@pytest.mark.parametrize("name", ["tune.json", "best.json"])
@pytest.mark.parametrize("content", ["{", "[]", '{"format": 99}', "[" * 100_000])
def test_damaged_files_are_one_sentence(name: str, content: str, tmp_path: Path) -> None:
    folder, small = tmp_path / "search", Tuning(Recipe("ease"), {"ridge": (1,)})
    tune(SPLIT, small, work=Work(folder=folder))
    (folder / name).write_text(content + "\n")
    with pytest.raises(ArtifactError, match=r"is damaged|format 99"):
        read_best(folder) if name == "best.json" else tune(SPLIT, small, work=Work(folder=folder))


@pytest.mark.parametrize("change", [{"model": 3}, {"settings": []}, {"fingerprint": None}])
def test_a_best_recipe_of_wrong_types_is_one_sentence(change: dict[str, object], tmp_path: Path) -> None:
    tune(SPLIT, Tuning(Recipe("ease"), {"ridge": (1,)}), work=Work(folder=tmp_path))
    best = json.loads((tmp_path / "best.json").read_text())
    (tmp_path / "best.json").write_text(json.dumps(best | change))
    with pytest.raises(ArtifactError, match=r"best\.json does not fit this towpath"):
        read_best(tmp_path)


def test_a_search_that_is_not_there_or_not_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArtifactError, match="There is no search at"):
        read_best(tmp_path)
    with counted(monkeypatch, 1), pytest.raises(Killed):
        tune(SPLIT, TUNING, work=Work(folder=tmp_path / "search"))
    with pytest.raises(ArtifactError, match="is not finished; run the same towpath tune command again"):
        read_best(tmp_path / "search")


def test_a_budget_is_spent_by_halving_and_a_search_that_was_killed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe("mf", settings={"embedding_dim": 4, "batch_size": 256, "epochs": 5})
    halved = Tuning(recipe, {"l2": (0.0, 0.01, 0.1), "learning_rate": (0.01, 0.03, 0.05)}, budget=100.0)
    whole = tune(SPLIT, halved)
    cut = [candidate for candidate in whole.candidates if "epochs" in candidate.values]
    full = [candidate for candidate in whole.candidates if "epochs" not in candidate.values]
    assert full[0].values == halved.start
    assert {candidate.values["epochs"] for candidate in cut} == {3}
    assert len(cut) == 4 * 4 - 1  # the grid with its start, but for the start
    assert 1 < len(full) < len(cut)
    with pytest.raises(Killed), counted(monkeypatch, most=4):
        tune(SPLIT, halved, work=Work(folder=tmp_path / "search"))
    with counted(monkeypatch) as fitted:
        again = tune(SPLIT, halved, work=Work(folder=tmp_path / "search"))
    assert scores(again) == scores(whole)
    assert len(fitted) == len(whole.candidates) - 4


def test_a_budget_that_is_spent_at_once_leaves_the_start() -> None:
    tuned = tune(SPLIT, replace(TUNING, budget=1e-6))
    assert [candidate.values for candidate in tuned.candidates] == [TUNING.start]


@pytest.mark.parametrize("other", [{"search": "optuna"}, {"trials": 3}, {"grid": {"epochs": (1, 2)}}])
def test_a_budget_goes_with_no_other_search(other: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="A budget"):
        replace(TUNING, budget=1.0, **other)
