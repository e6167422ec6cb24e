"""Exported vectors: their inner products are the scores, and an index finds the best of them."""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import towpath
from contracts import SCORERS
from small import small_split
from towpath.errors import ConfigError
from towpath.models.scorer import context_of
from towpath.serving.artifact import Artifact
from towpath.serving.export import recall_of, vectors_of, write_vectors

SPLIT = small_split()


def artifact(model: str) -> Artifact:
    return towpath.recommender(towpath.fit(SPLIT, model, **{**SCORERS[model], "epochs": 2}), SPLIT).artifact


@pytest.mark.parametrize("model", ["mf", "gmf", "sgns", "attention"])
def test_inner_products_are_the_scores(model: str) -> None:
    served = artifact(model)
    vectors = vectors_of(served)
    scorer, users = served.scorer, np.arange(60)
    with torch.no_grad():
        scores = scorer.score(context_of(scorer, users, served.history.histories), torch.arange(40)[None])
    assert np.allclose(vectors.users @ vectors.items.T, scores.numpy(), atol=1e-5)


def test_files_hold_the_same_vectors_under_the_own_ids(tmp_path: Path) -> None:
    served = artifact("mf")
    assert write_vectors(served, tmp_path / "v") is None
    for side, ids in (("items", served.item_ids), ("users", served.user_ids)):
        table = pq.read_table(tmp_path / "v" / f"{side}.parquet")
        assert table.column("id").to_pylist() == ids.ids(np.arange(len(ids)))
        vectors = np.array(table.column("vector").to_pylist(), dtype=np.float32)
        assert np.array_equal(vectors, np.load(tmp_path / "v" / f"{side}.npy"))
    assert vectors.shape == (60, 10)  # eight, the item's bias, and the user's


@pytest.mark.parametrize("model", ["ease", "mlp", "popularity"])
def test_models_without_factors_have_nothing_to_export(model: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not score by inner products, so it has no vectors"):
        write_vectors(artifact(model), tmp_path / "v")
    assert not (tmp_path / "v").exists()


def test_recall_by_hand() -> None:
    items = np.array([[3.0], [2.0], [1.0]], dtype=np.float32)
    users = np.array([[1.0], [-1.0]], dtype=np.float32)
    # The exact pairs are (0, 1) and (2, 1); three of the four are found.
    assert recall_of(np.array([[0, 1], [2, 0]]), users, items) == 0.75


def test_an_index_of_few_items_finds_everything(tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss")
    report = write_vectors(artifact("mf"), tmp_path / "v", index=True, k=5)
    assert (report.k, report.users, report.recall) == (5, 60, 1.0)
    index = faiss.read_index(str(tmp_path / "v" / "items.faiss"))
    users, items = (np.load(tmp_path / "v" / f"{side}.npy") for side in ("users", "items"))
    scores, _ = index.search(users[:1], 5)
    assert scores[0] == pytest.approx(np.sort(users[0] @ items.T)[::-1][:5], abs=1e-5)


def test_without_faiss_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ConfigError, match=r"pip install 'towpath\[faiss\]'"):
        write_vectors(artifact("mf"), tmp_path / "v", index=True)
    assert not (tmp_path / "v").exists()
