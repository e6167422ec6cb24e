"""Models and methods of the user's own, handed over as they are."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from torch import Tensor

import towpath
from impressions import impressions_split
from small import small_split
from towpath.data.interactions import Interactions
from towpath.errors import ArtifactError, ConfigError
from towpath.experiments.code_version import outside_sources
from towpath.experiments.pool import Work
from towpath.experiments.trials import read_best
from towpath.experiments.tune import Tuning, tune
from towpath.methods.method import Method
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.factorization import Factorization
from towpath.models.headed import Headed
from towpath.models.popularity import Popularity
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.rng import Rng
from towpath.training.fit import EpochMetrics
from towpath.training.plain import PlainLearner, PlainSettings

SPLIT = small_split()
SHOWN = impressions_split(users=60, rows=1500)
QUICK = {"epochs": 2, "batch_size": 64, "embedding_dim": 4}
SHORT = {"epochs": 2, "batch_size": 64}


class Inverted(Popularity):
    """The least popular items first."""

    def score(self, context: Context, items: Tensor) -> Tensor:
        return -super().score(context, items)


class Mine(Factorization):
    """A factorisation with a name of its own."""


class Other(Factorization):
    """A factorisation for players."""


class Plain(Scorer):
    """A bias for every item: not a factorisation, so that transport on impressions makes it a tower."""

    settings_type = Settings

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        self.bias = torch.nn.Parameter(torch.zeros(sizes.items))

    def initialise(self, train: Interactions, rng: Rng) -> None:
        with torch.no_grad():
            self.bias.normal_(0.0, 0.1, generator=rng.torch("bias"))

    def score(self, context: Context, items: Tensor) -> Tensor:
        return self.bias[items].expand(len(context.users), -1)


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


@pytest.mark.parametrize("method", ["esmm", "transport"])
def test_a_class_is_a_tower(method: str, tmp_path: Path) -> None:
    done = towpath.fit(SHOWN, Plain, method, **SHORT)
    tower = done.scorer.tower if isinstance(done.scorer, Headed) else done.scorer
    assert isinstance(tower, Plain)
    assert isinstance(done.scorer, Headed) == (method == "esmm")
    towpath.save(done, SHOWN, tmp_path / "model")
    before = towpath.recommender(done, SHOWN).recommend("u3", k=5)
    assert towpath.load(tmp_path / "model", models=[Plain]).recommend("u3", k=5) == before
    with pytest.raises(ArtifactError, match=r"'.*:Plain', .* hand its class to towpath.load"):
        towpath.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("method", "setting"), [("transport", "w"), ("transport", "g"), ("adversarial", "g")]
)
def test_a_class_plays_next_to_f(method: str, setting: str, tmp_path: Path) -> None:
    recipe = Recipe(Mine, method, QUICK | {setting: Other, "hard_negatives": 0})
    assert recipe.resolved()["settings"][setting] == f"{__name__}:Other"
    done = fit(SPLIT, recipe)
    assert f"{__name__}" in outside_sources(recipe)  # so a changed class is another result
    towpath.save(done, SPLIT, tmp_path / "model")
    assert towpath.load(tmp_path / "model", models=[Mine]).recommend("u3").items
    # Stopped after the first epoch and resumed, it ends with the same numbers.
    stopped: list[int] = []

    def stop(row: EpochMetrics) -> None:
        stopped.append(int(row["epoch"]))
        if len(stopped) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(SPLIT, recipe, checkpoint=tmp_path / "checkpoint", watch=stop)
    again = fit(SPLIT, recipe, checkpoint=tmp_path / "checkpoint", watch=stop)
    assert again.history[-1]["loss"] == done.history[-1]["loss"]


def test_naming_a_player_plays_the_game_also_where_there_are_impressions() -> None:
    library = fit(SHOWN, Recipe("mf", "transport", QUICK))
    assert "ess" not in library.history[-1]
    for asked in ({"w": "mf"}, {"g": Other}, {"players": "models"}):
        game = fit(SHOWN, Recipe("mf", "transport", QUICK | {"list_length": 5} | asked))
        assert {name.partition(".")[0] for name in game.auxiliary_state} == {"w", "g"}
    with pytest.raises(ConfigError, match="w=mf means players=models, and players=margin says otherwise"):
        towpath.fit(SHOWN, "mf", "transport", w="mf", players="margin")


def test_a_search_with_a_class_among_the_settings_is_stored(tmp_path: Path) -> None:
    recipe = Recipe("mf", "adversarial", QUICK | {"g": Other, "warm_epochs": 1})
    tune(SPLIT, Tuning(recipe, {"l2": (0.0,)}), work=Work(folder=tmp_path / "search"))
    assert read_best(tmp_path / "search")[0].settings["g"] == f"{__name__}:Other"


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
