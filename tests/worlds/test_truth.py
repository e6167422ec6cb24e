import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from small_impressions import small_log, small_world
from towpath.data.vocabulary import Vocabulary
from towpath.errors import ArtifactError, DataError
from towpath.evaluation.evaluate import evaluate
from towpath.experiments.compare import compare_fits
from towpath.experiments.run_result import EvaluationConfig
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.worlds.store import save_world
from towpath.worlds.truth import relevance_for, truth_next_to

WORLD, LOG = small_world(), small_log()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("truth") / "world"
    save_world(WORLD, place, {})
    return place


def test_relevance_follows_the_ids(folder: Path) -> None:
    users = Vocabulary(WORLD.log.user_ids.values.take(pa.array([5, 2])))
    rows = replace(WORLD.log, user_ids=users)
    assert np.array_equal(relevance_for(rows, folder), WORLD.relevance[[5, 2]])


def test_ids_of_another_world_are_refused(folder: Path) -> None:
    rows = replace(WORLD.log, user_ids=Vocabulary(pa.array(["nobody"])))
    with pytest.raises(DataError, match="1 of 1 in the data are not among them"):
        relevance_for(rows, folder)


def test_a_changed_byte_of_the_truth_is_noticed(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "world")
    truth = bytearray((copy / "truth.safetensors").read_bytes())
    truth[-1] ^= 1
    (copy / "truth.safetensors").write_bytes(truth)
    with pytest.raises(ArtifactError, match="does not match its checksum"):
        relevance_for(WORLD.log, copy)


def test_the_truth_is_found_next_to_the_events(folder: Path, tmp_path: Path) -> None:
    assert truth_next_to(folder) == truth_next_to(folder / "events.parquet") == folder
    assert truth_next_to(tmp_path) is None
    assert truth_next_to("ml-1m") is None


def test_truth_is_the_sum_of_relevance_over_the_lists_of_full() -> None:
    scorer = fit(LOG, Recipe("mf", "plain", {"epochs": 1})).scorer
    found = evaluate(scorer, LOG, protocol="truth", relevance=WORLD.relevance)
    wanted = evaluate(scorer, LOG, relevance=WORLD.relevance)
    assert set(found.per_user) == {"rel"}
    assert np.array_equal(found.per_user["rel"], wanted.per_user["rel"])
    assert 0 <= found.overall["shown_share"] <= 1
    with pytest.raises(DataError, match="true relevance of every pair"):
        evaluate(scorer, LOG, protocol="truth")


def test_a_comparison_evaluates_by_the_truth(folder: Path) -> None:
    recipes = {m: Recipe("mf", m, {"epochs": 1}) for m in ("plain", "imitation")}
    inference_mode = EvaluationConfig(protocols=("full", "truth"), truth=folder)
    rows = compare_fits(LOG, recipes, seeds=(0,), evaluation=inference_mode).rows
    found = {(row.label, row.metric) for row in rows if row.protocol == "truth"}
    assert {("plain", "rel"), ("imitation", "rel"), ("plain", "shown_share")} <= found
    with pytest.raises(DataError, match="folder of a simulated world"):
        compare_fits(LOG, recipes, seeds=(0,), evaluation=EvaluationConfig(protocols=("truth",)))
