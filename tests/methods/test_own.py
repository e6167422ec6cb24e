"""Models and methods of the user's own, handed over as they are."""

import json
import pickle
from pathlib import Path

import pytest
from torch import Tensor

import towpath
from impressions import impressions_split
from small import small_split
from towpath.errors import ConfigError
from towpath.experiments.pool import Work
from towpath.experiments.trials import read_best
from towpath.experiments.tune import Tuning, tune
from towpath.methods.method import Method
from towpath.methods.recipe import Recipe
from towpath.models.factorization import Factorization
from towpath.models.popularity import Popularity
from towpath.models.scorer import Context, Scorer
from towpath.training.plain import PlainLearner, PlainSettings

SPLIT = small_split()
QUICK = {"epochs": 2, "batch_size": 64, "embedding_dim": 4}


class Inverted(Popularity):
    """The least popular items first."""

    def score(self, context: Context, items: Tensor) -> Tensor:
        return -super().score(context, items)


class Mine(Factorization):
    """A factorisation with a name of its own."""


class Counting(PlainLearner):
    """Plain training that says how often it was asked."""

    def epoch(self, number: int) -> dict[str, float]:
        return super().epoch(number) | {"asked": float(number)}


COUNTING = Method("counting", PlainSettings, Counting, grid={"l2": (0.0, 0.1)})


def test_a_class_is_fitted_evaluated_saved_and_loaded(tmp_path: Path) -> None:
    best, worst = (towpath.fit(SPLIT, kind) for kind in (Popularity, Inverted))
    metrics = [towpath.evaluate(one, SPLIT).metrics()["hit"] for one in (best, worst)]
    assert metrics[0] > metrics[1]
    towpath.save(worst, SPLIT, tmp_path / "own")
    assert towpath.load(tmp_path / "own", models=[Inverted]).recommend("u3", k=3).scores[0] <= 0


def test_a_class_of_towpath_is_known_by_its_name() -> None:
    assert Recipe(Popularity).names == {"model": "popularity", "method": "plain"}
    assert Recipe(Mine).model_name == f"{__name__}:Mine"


def test_a_class_and_a_method_train_like_what_they_are_made_of() -> None:
    own, plain = (towpath.fit(SPLIT, *what, **QUICK) for what in ((Mine, COUNTING), ("mf", "plain")))
    assert [row["asked"] for row in own.history] == [1, 2]
    assert [row["loss"] for row in own.history] == [row["loss"] for row in plain.history]
    recipe = Recipe(Mine, COUNTING, QUICK)
    assert json.loads(json.dumps(recipe.resolved()))["method"] == "counting"
    assert pickle.loads(pickle.dumps(recipe)) == recipe  # as it goes to other processes


def test_a_class_plays_by_the_rules_of_other_methods() -> None:
    assert "ess" in towpath.fit(SPLIT, Mine, "transport", list_length=5, **QUICK).history[-1]
    with pytest.raises(ConfigError, match=r"The method 'ipw' needs a model with parameters .*Inverted has a"):
        Recipe(Inverted, "ipw").resolve()
    with pytest.raises(ConfigError, match=r"'expomf' trains mf only, and the model is '.*:Mine'"):
        Recipe(Mine, "expomf").resolve()
    with pytest.raises(ConfigError, match="'counting' weighs single pairs"):
        Recipe("mf", COUNTING, {"loss": "softmax"}).resolve()
    with pytest.raises(
        ConfigError, match=r"no setting of .*:Mine with counting 'epoch'; did you mean 'epochs'"
    ):
        Recipe(Mine, COUNTING, {"epoch": 2}).resolve()


def test_heads_on_a_class_that_nobody_registers_are_refused_in_a_sentence() -> None:
    """A model with heads is saved with the name of its tower, which must then be found again."""
    shown = impressions_split(users=60, rows=1500)
    with pytest.raises(ConfigError, match=r"No installed package registers the model '.*:Mine'"):
        towpath.fit(shown, Mine, "esmm", **QUICK)


def test_own_classes_are_compared_and_tuned(tmp_path: Path) -> None:
    recipes = {"own": Recipe(Mine, COUNTING, QUICK), "upside down": Recipe(Inverted)}
    found = towpath.compare(SPLIT, recipes, seeds=(0,))
    assert {row.label for row in found.rows} == set(recipes)
    tuned = tune(SPLIT, Tuning(recipes["own"]), work=Work(folder=tmp_path / "search"))
    assert tuned.recipe.model is Mine
    assert json.loads((tmp_path / "search" / "tune.json").read_text())["method"] == "counting"
    with pytest.raises(ConfigError, match="No installed package registers the model"):
        read_best(tmp_path / "search")[0].resolve()


class Bare(Scorer):
    """A model without settings."""


@pytest.mark.parametrize(
    ("model", "method", "sentence"),
    [
        (int, "plain", "A model is a name or a class that extends .*, and <class 'int'> was given"),
        (3, "plain", "A model is a name or a class that extends .*, and 3 was given"),
        (Bare, "plain", "The model Bare has no settings_type"),
        ("mf", Counting, "A method is a name or a towpath.methods.method.Method, and <class .*Counting"),
    ],
)
def test_what_is_neither_is_said_in_a_sentence(model: object, method: object, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        towpath.fit(SPLIT, model, method)
