"""What is stored is what was computed; nothing is computed twice, and changed code gets no old result."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import towpath
from small import small_split
from towpath.cli import main
from towpath.errors import ArtifactError
from towpath.evaluation.evaluate import evaluate
from towpath.evaluation.result import Evaluation
from towpath.experiments import compare as module
from towpath.experiments.compare import compare_fits
from towpath.experiments.pool import Work
from towpath.experiments.result_store import ResultStore, open_store, refuse_foreign
from towpath.experiments.run_result import EvaluationConfig, RunResult, RunSpec
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

    def counting(split, recipe):
        made.append((recipe.model, recipe.seed))
        return fit(split, recipe)

    monkeypatch.setattr(module, "fit", counting)
    return made


def test_what_is_read_is_what_was_stored(tmp_path: Path) -> None:
    evaluation = EvaluationConfig(("full", "paper"), on="validation", k=5)
    store = ResultStore(tmp_path)
    scorer = fit(WIDE, MF).scorer
    evaluations = tuple(
        evaluate(scorer, WIDE, protocol=p, on="validation", k=5) for p in evaluation.protocols
    )
    key = RunSpec("mf", MF).key(store, WIDE.fingerprint, evaluation)
    assert RunSpec("another name", MF).key(store, WIDE.fingerprint, evaluation) == key
    result = RunResult("mf", 0, 1, 2.5, evaluations, ({"epoch": 1, "seconds": 2.5},), 3.5)
    store.put(key, result)
    read = store.get(RunResult, key.name)
    assert read is not None
    assert replace(read, evaluations=()) == replace(result, evaluations=())
    for one, two in zip(read.evaluations, evaluations, strict=True):
        assert (one.protocol, one.on, one.k, one.users_left_out) == (two.protocol, two.on, two.k, 0)
        assert one.overall == two.overall
        assert one.per_user.keys() == two.per_user.keys()
        assert all(np.array_equal(one.per_user[name], two.per_user[name]) for name in one.per_user)
        assert np.array_equal(one.users, two.users)


def stored_result(folder: Path, seed: int = 0) -> tuple[ResultStore, str]:
    store = ResultStore(folder, "c")
    key = store.key(data="d", recipe=replace(MF, seed=seed))
    one = Evaluation("full", "test", 10, np.arange(3), {"hit": np.array([1.0, seed, 1])}, {"coverage": 0.5})
    store.put(key, RunResult("mf", seed, 1, 2.5, (one,)))
    return store, key.name


def test_a_result_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    store, name = stored_result(tmp_path)
    _, other = stored_result(tmp_path, seed=1)
    shutil.copy(store.path(RunResult, other), store.path(RunResult, name))
    with pytest.raises(ArtifactError, match="is the result of something else; delete it"):
        store.get(RunResult, name)


@pytest.mark.parametrize("change", ["column", "notes", "types"])
def test_a_changed_result_is_refused(change: str, tmp_path: Path) -> None:
    store, name = stored_result(tmp_path)
    path = store.path(RunResult, name)
    table = pq.read_table(path)
    told = json.loads(table.schema.metadata[b"towpath"])
    if change == "column":
        first = table.column_names[0]
        table = table.set_column(0, first, pa.array(table.column(0).to_numpy() + 1))
    elif change == "notes":
        told["notes"]["seconds"] = 0.0
    else:
        told = told | {"notes": {}, "digest": None}
    pq.write_table(table.replace_schema_metadata({"towpath": json.dumps(told)}), path)
    with pytest.raises(ArtifactError, match="delete it"):
        store.get(RunResult, name)


def test_protocols_may_evaluate_different_users(tmp_path: Path) -> None:
    three = Evaluation("full", "test", 10, np.arange(3), {"hit": np.array([1.0, 0, 1])}, {"coverage": 0.5})
    two = Evaluation("listed", "test", 10, np.array([4, 7]), {"auc": np.array([0.25, np.nan])}, {})
    key = ResultStore(tmp_path, "c").key(data="d", recipe=MF)
    lists = np.array([[3, 1], [2, -1], [0, 1], [5, 4]])  # of other users again
    ResultStore(tmp_path, "c").put(key, RunResult("mf", 0, 1, 2.5, (two, three), lists=lists))
    read = ResultStore(tmp_path, "c").get(RunResult, key.name)
    assert read is not None
    assert np.array_equal(read.lists, lists)
    for one, stored in zip(read.evaluations, (two, three), strict=True):
        assert np.array_equal(one.users, stored.users)
        (name,) = stored.per_user
        assert np.array_equal(one.per_user[name], stored.per_user[name], equal_nan=True)


def test_whatever_a_number_depends_on_gives_another_name(tmp_path: Path) -> None:
    store, plain = ResultStore(tmp_path, "one"), EvaluationConfig()

    def name(recipe=MF, data="data", evaluation=plain, store=store) -> str:
        return RunSpec("mf", recipe).key(store, data, evaluation).name

    changed = [
        name(replace(MF, seed=1)),
        name(replace(MF, settings={**MF.settings, "l2": 1})),
        name(Recipe("popularity")),
        name(data="other"),
        name(evaluation=EvaluationConfig(k=5)),
        name(evaluation=EvaluationConfig(on="validation")),
        name(store=ResultStore(tmp_path, "other code")),
    ]
    assert len({name(), *changed}) == 1 + len(changed)
    assert name(replace(MF, settings={**MF.settings, "negatives": 20})) == name()  # the default


def test_the_same_comparison_again_fits_nothing_and_says_the_same(tmp_path: Path, fitted) -> None:
    whole = compare_fits(SPLIT, RECIPES, seeds=[0, 1])
    reported: list[str] = []
    work = Work[RunResult](folder=tmp_path, on_result=lambda run: reported.append(run.label))
    fitted.clear()
    assert compare_fits(SPLIT, RECIPES, seeds=[0, 1], work=work) == whole
    assert fitted == [("mf", 0), ("popularity", 0), ("mf", 1)]
    assert compare_fits(SPLIT, RECIPES, seeds=[0, 1], work=work) == whole
    assert len(fitted) == 3
    assert len(reported) == 6  # stored results are reported too
    compare_fits(SPLIT, RECIPES, seeds=[0, 1, 2], work=work)
    assert fitted[3:] == [("mf", 2)]


def test_killed_in_between_it_goes_on(tmp_path: Path) -> None:
    def killed(run: RunResult) -> None:
        if run.label == "popularity":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare_fits(SPLIT, RECIPES, seeds=[0, 1], work=Work(folder=tmp_path, on_result=killed))
    assert len(list((tmp_path / "results").iterdir())) == 2
    again = compare_fits(SPLIT, RECIPES, seeds=[0, 1], work=Work(folder=tmp_path))
    assert again == compare_fits(SPLIT, RECIPES, seeds=[0, 1])
    assert not list(tmp_path.rglob("*.partial"))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    work = Work[RunResult](folder=tmp_path)
    compare_fits(SPLIT, {"popularity": Recipe("popularity")}, seeds=[0], work=work)
    (path,) = (tmp_path / "results").iterdir()
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ArtifactError, match=path.name):
        compare_fits(SPLIT, {"popularity": Recipe("popularity")}, seeds=[0], work=work)


@pytest.mark.parametrize("earlier", ["fits/ab.parquet", "cells/ab.parquet", "ab12/round-001.parquet"])
def test_folders_of_earlier_versions_are_one_sentence(tmp_path: Path, earlier: str) -> None:
    (tmp_path / earlier).parent.mkdir()
    (tmp_path / earlier).write_text("")
    for refused in (open_store, refuse_foreign):
        with pytest.raises(ArtifactError, match="written by an earlier version of towpath"):
            refused(tmp_path)


# -- issue 15: a changed model must not get its old result -------------------------------------------------

PROGRAM = "from towpath.cli import main; raise SystemExit(main())"


def hit_of(printed: str) -> float:
    return next(row["mean"] for row in json.loads(printed)["rows"] if row["metric"] == "hit")


def test_a_changed_model_does_not_get_its_old_result(
    events: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compare", str(events), "--models", "popularity", "--seeds", "1", "--json"]
    command += ["--out", str(tmp_path / "table")]
    assert main(command) == 0
    before = hit_of(capsys.readouterr().out)
    assert main(command) == 0
    assert hit_of(capsys.readouterr().out) == before
    (stored,) = (tmp_path / "table" / "results").iterdir()
    # The same command by a copy of the package whose scores are inverted, in a process of its own.
    package = tmp_path / "src" / "towpath"
    shutil.copytree(Path(towpath.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    model = package / "models" / "popularity.py"
    text = model.read_text()
    model.write_text(text.replace("return self.counts[items]", "return -self.counts[items]"))
    assert model.read_text() != text
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", PROGRAM, *command]
    finished = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert hit_of(finished.stdout) < before
    assert len(list((tmp_path / "table" / "results").iterdir())) == 2
    assert stored.is_file()
