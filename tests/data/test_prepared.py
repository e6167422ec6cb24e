"""A split that the engine writes is the split that is made in memory."""

from pathlib import Path

import numpy as np
import pytest

import towpath
from event_files import write_slates
from towpath import Cleaning, SplitStrategy, mapped
from towpath.data import parquet
from towpath.data.split import load_split, save_split
from towpath.errors import ConfigError, DataError


@pytest.mark.parametrize("how", towpath.SPLIT_STRATEGIES)
def test_preparing_is_reading_and_splitting(
    how: SplitStrategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_slates(tmp_path / "log")
    monkeypatch.setattr(parquet, "ROWS_OF_A_FILE", 64)
    monkeypatch.setattr("towpath.data.prepared.BATCH_ROWS", 50)
    cleaning = Cleaning(min_per_user=3)
    wanted = towpath.split(towpath.read(log, cleaning=cleaning), how, seed=5)
    found = towpath.prepare(log, tmp_path / "split", how, seed=5, cleaning=cleaning)
    assert found.fingerprint == wanted.fingerprint
    assert found.description == wanted.description
    assert len(list((tmp_path / "split" / "train").iterdir())) > 1
    assert load_split(tmp_path / "split").fingerprint == wanted.fingerprint


def test_features_are_prepared_too(events: Path, tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user,age\nu0,30\nu1,40\n")
    features = towpath.FeatureFiles(users=tmp_path / "users.csv")
    wanted = towpath.split(towpath.read(events, features=features))
    assert towpath.prepare(events, tmp_path / "split", features=features).fingerprint == wanted.fingerprint


def test_large_columns_are_maps_of_files_that_leave_nothing_behind(
    events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = towpath.prepare(events, tmp_path / "split")
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    monkeypatch.setattr(mapped, "MAPPED_FROM", 10)
    found = load_split(tmp_path / "split")
    assert isinstance(found.train.users.base, np.memmap)
    assert found.fingerprint == wanted.fingerprint
    save_split(found, tmp_path / "again")
    assert load_split(tmp_path / "again").fingerprint == wanted.fingerprint
    assert not any((tmp_path / "scratch").iterdir())


def test_what_cannot_be_split_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("user,item,time\n1,2,3\n1,3,\n2,2,4\n")
    with pytest.raises(DataError, match=r"1 of 3 have none \(first: user 1, item 3\)"):
        towpath.prepare(tmp_path / "e.csv", tmp_path / "split")
    (tmp_path / "n.csv").write_text("user,item\n1,2\n1,3\n2,2\n")
    with pytest.raises(DataError, match="no time column"):
        towpath.prepare(tmp_path / "n.csv", tmp_path / "split", "time")
    with pytest.raises(DataError, match="should give each part some positives"):
        towpath.prepare(tmp_path / "n.csv", tmp_path / "split")
    with pytest.raises(ConfigError, match="shares"):
        towpath.prepare(tmp_path / "n.csv", tmp_path / "split", "random", test_share=1.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "n.csv"]
