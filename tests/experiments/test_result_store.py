"""What a comparison keeps is what it found, and nothing is made twice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from small import small_split
from towpath.errors import ArtifactError
from towpath.evaluation.evaluate import evaluate
from towpath.experiments import compare as module
from towpath.experiments.compare import compare_fits
from towpath.experiments.pool import Work
from towpath.experiments.result_store import EvaluationConfig, ResultStore, RunResult
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit

SPLIT = small_split()
WIDE = small_split(items=150)
MF = Recipe("mf", settings={"epochs": 1, "embedding_dim": 4})
RECIPES = {"mf": MF, "popularity": Recipe("popularity")}


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The model and seed of every fit that is made."""
    made: list[tuple[str, int]] = []

    def watched(split, recipe):
        made.append((recipe.model, recipe.seed))
        return fit(split, recipe)

    monkeypatch.setattr(module, "fit", watched)
    return made


def test_what_is_read_is_what_was_kept(tmp_path: Path) -> None:
    evaluation = EvaluationConfig(("full", "paper"), on="validation", k=5)
    kept = ResultStore(tmp_path, WIDE.fingerprint, evaluation)
    scorer = fit(WIDE, MF).scorer
    found = tuple(evaluate(scorer, WIDE, protocol=p, on="validation", k=5) for p in evaluation.protocols)
    kept.keep(("mf", MF), RunResult("mf", 0, 1, 2.5, found))
    done = kept.find(("another name", MF))
    assert done is not None
    assert (done.label, done.seed, done.epochs, done.seconds) == ("another name", 0, 1, 2.5)
    for one, two in zip(done.evaluations, found, strict=True):
        assert (one.protocol, one.on, one.k, one.users_left_out) == (two.protocol, two.on, two.k, 0)
        assert one.overall == two.overall
        assert one.per_user.keys() == two.per_user.keys()
        assert all(np.array_equal(one.per_user[name], two.per_user[name]) for name in one.per_user)
        assert np.array_equal(one.users, two.users)


def test_whatever_a_number_depends_on_makes_another_file(tmp_path: Path) -> None:
    kept = ResultStore(tmp_path, SPLIT.fingerprint, EvaluationConfig())
    found = (evaluate(fit(SPLIT, MF).scorer, SPLIT),)
    kept.keep(("mf", MF), RunResult("mf", 0, 1, 2.5, found))
    for other in (replace(MF, seed=1), replace(MF, settings={**MF.settings, "l2": 1}), Recipe("popularity")):
        assert kept.find(("mf", other)) is None
    assert kept.find(("mf", replace(MF, settings={**MF.settings, "negatives": 3}))) is not None  # the default
    assert replace(kept, fingerprint="other").find(("mf", MF)) is None
    assert replace(kept, evaluation=EvaluationConfig(k=5)).find(("mf", MF)) is None
    assert replace(kept, evaluation=EvaluationConfig(on="validation")).find(("mf", MF)) is None


def test_the_same_comparison_again_fits_nothing_and_says_the_same(tmp_path: Path, fitted) -> None:
    whole = compare_fits(SPLIT, RECIPES, seeds=[0, 1])
    heard: list[str] = []
    work = Work[RunResult](folder=tmp_path, watch=lambda done: heard.append(done.label))
    fitted.clear()
    assert compare_fits(SPLIT, RECIPES, seeds=[0, 1], work=work) == whole
    assert fitted == [("mf", 0), ("popularity", 0), ("mf", 1)]
    assert compare_fits(SPLIT, RECIPES, seeds=[0, 1], work=work) == whole
    assert len(fitted) == 3
    assert len(heard) == 6  # who watches hears of what was found too
    compare_fits(SPLIT, RECIPES, seeds=[0, 1, 2], work=work)
    assert fitted[3:] == [("mf", 2)]


def test_killed_in_between_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(done: RunResult) -> None:
        if done.label == "popularity":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare_fits(SPLIT, RECIPES, seeds=[0, 1], work=Work(folder=tmp_path, watch=killed))
    assert len(list((tmp_path / "fits").iterdir())) == 2
    again = compare_fits(SPLIT, RECIPES, seeds=[0, 1], work=Work(folder=tmp_path))
    assert again == compare_fits(SPLIT, RECIPES, seeds=[0, 1])
    assert not list(tmp_path.rglob("*.partial"))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    work = Work[RunResult](folder=tmp_path)
    compare_fits(SPLIT, {"popularity": Recipe("popularity")}, seeds=[0], work=work)
    (path,) = (tmp_path / "fits").iterdir()
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ArtifactError, match=path.name):
        compare_fits(SPLIT, {"popularity": Recipe("popularity")}, seeds=[0], work=work)
