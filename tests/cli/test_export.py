"""towpath export on the command line."""

from pathlib import Path

import pytest


def test_export(towpath, finished: Path, tmp_path: Path) -> None:
    told = towpath("export", finished, "--out", tmp_path / "v", "--json").json
    assert told == {"out": str(tmp_path / "v"), "items": 80, "users": 300}
    names = {path.name for path in (tmp_path / "v").iterdir()}
    assert names == {"items.parquet", "items.npy", "users.parquet", "users.npy", "manifest.json"}
    assert "already exists" in towpath("export", finished, "--out", tmp_path / "v").sentence()


def test_export_with_an_index(towpath, finished: Path, tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    told = towpath("export", finished, "--out", tmp_path / "v", "--index", "faiss", "-k", 5, "--json").json
    assert (told["k"], told["asked_users"]) == (5, 300)
    assert 0.95 <= told["recall"] <= 1


def test_export_sentences(towpath, finished: Path, finished_ease: Path, tmp_path: Path) -> None:
    wrong = towpath("export", finished, "--out", tmp_path / "v", "--index", "fais").sentence()
    assert wrong.startswith("There is no index 'fais'; did you mean 'faiss'?")
    assert "k must lie between" in towpath("export", finished, "--out", tmp_path / "v", "-k", 0).sentence()
    none = towpath("export", finished_ease, "--out", tmp_path / "v").sentence()
    assert none.startswith("Ease does not score by inner products")
    assert list(tmp_path.iterdir()) == []
