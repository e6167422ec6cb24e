"""Models and methods of other packages, found by their entry points."""

import json
from pathlib import Path

import pytest

import towpath
from tiny_package import install
from towpath.data.split import Split
from towpath.errors import ArtifactError, ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_name, method_named
from towpath.models.registry import model_name, model_type
from towpath.testing import small_split

QUICK = {"epochs": 2, "batch_size": 64, "embedding_dim": 4}


@pytest.fixture
def split() -> Split:
    return small_split()


@pytest.mark.usefixtures("installed")
def test_a_registered_model_is_fitted_saved_loaded_and_asked_by_name(split: Split, tmp_path: Path) -> None:
    fitted = towpath.fit(split, "rare")
    towpath.save(fitted, split, tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert (manifest["model"], manifest["model_class"]) == ("rare", "oddments:Rare")
    loaded = towpath.load(tmp_path / "model")
    assert type(loaded.artifact.scorer).__name__ == "Rare"
    user = split.train.user_ids.ids([0])[0]
    scores = loaded.recommend(user, 3).scores
    assert scores == tuple(sorted(scores, reverse=True))
    assert scores[0] <= 0


@pytest.mark.usefixtures("installed")
def test_a_registered_model_plays_and_a_registered_method_trains(split: Split) -> None:
    game = towpath.fit(
        split, "mf", "transport", solver="game", players="models", w="mine", list_length=5, **QUICK
    )
    assert any(name.startswith("w.scorer") for name in game.auxiliary_state)
    assert towpath.fit(split, "mine", "loud", **QUICK).history[0]["loud"] == 1
    found = towpath.compare(
        split, {"mine": Recipe("mine", "loud", QUICK), "mf": Recipe("mf", "plain", QUICK)}
    )
    assert {row.label for row in found.rows} == {"mine", "mf"}
    assert Recipe("mine", "loud").names == {"model": "mine", "method": "loud"}


@pytest.mark.usefixtures("installed")
def test_names_go_both_ways_and_the_packages_own_come_first() -> None:
    assert model_name(model_type("rare")) == "rare"
    assert method_name(method_named("loud")) == "loud"
    assert model_type("mf").__module__ == "towpath.models.factorization"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("broken", "'broken' of the group towpath.models cannot be imported from oddments.nowhere:Broken"),
        ("number", "A model is a name or a class that extends towpath.models.scorer.Scorer, and 3 was given"),
        ("rrare", "no model 'rrare'; did you mean 'rare'"),
        ("oddments:Rare", "No installed package registers the model 'oddments:Rare'"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(model: str, sentence: str, split: Split) -> None:
    with pytest.raises(ConfigError, match=sentence):
        towpath.fit(split, model)


def test_an_artifact_of_a_package_that_is_gone(installed: Path, split: Split, tmp_path: Path) -> None:
    towpath.save(towpath.fit(split, "rare"), split, tmp_path / "model")
    (installed / "oddments-1.0.dist-info" / "entry_points.txt").unlink()
    with pytest.raises(ArtifactError, match=r"no model 'rare'.* install the package that registers it"):
        towpath.load(tmp_path / "model")


def test_two_packages_with_one_name(installed: Path, split: Split) -> None:
    install(installed, "others", "[towpath.models]\nrare = others:Rare\n")
    with pytest.raises(ConfigError, match="Two packages register 'rare'"):
        towpath.fit(split, "rare")
