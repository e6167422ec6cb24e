import datetime
import errno

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from small_logs import click, log_of, order, request
from towpath.errors import ArtifactError, ConfigError
from towpath.serving.exposure_log.export import Exported, export_log
from towpath.serving.exposure_log.tables import RequestRow

COLUMNS = [
    "user", "item", "time", "request", "position", "score", "propensity", "policy", "model_version", "label",
    "units", "value",
]  # fmt: skip


def exported(tmp_path, *rows):
    found = export_log(log_of(*rows), tmp_path / "log.parquet")
    return found, pq.read_table(tmp_path / "log.parquet")


def test_every_shown_item_has_a_row_with_what_became_of_it(tmp_path):
    slate = RequestRow(
        "r0", 1_700_000_000_000_000, "ann", "recommend", None, "new", "v1", 0,
        '["x", "y", "z"]', "[3.5, 2.5, -1e-7]", "[0.9, 0.05, 0.05]",
    )  # fmt: skip
    found, table = exported(
        tmp_path,
        slate,
        request(1, "bob", "control", 1_600_000_000_000_000, items="ab"),
        click("e1", 0, "y", 9),
        click("e1", 0, "y", 10),  # sent twice
        order("e2", 1, 11, units=2, value=30),
        order("e3", 1, 12, units=1, value=5),
        order("e3", 1, 12, units=1, value=5),
    )
    assert table.column_names == COLUMNS
    assert table["request"].to_pylist() == ["r1", "r1", "r0", "r0", "r0"]  # by time
    assert table["user"].to_pylist() == ["bob", "bob", "ann", "ann", "ann"]
    assert table["item"].to_pylist() == ["a", "b", "x", "y", "z"]
    assert table["position"].to_pylist() == [1, 2, 1, 2, 3]
    assert table["score"].to_pylist()[2:] == [3.5, 2.5, -1e-7]
    assert table["propensity"].to_pylist()[2:] == [0.9, 0.05, 0.05]
    assert table["label"].to_pylist() == [1, 0, 0, 1, 0]
    assert table["units"].to_pylist() == [3, 0, 0, 0, 0]
    assert table["value"].to_pylist() == [35, 0, 0, 0, 0]
    assert table["policy"].to_pylist() == ["control"] * 2 + ["new"] * 3
    assert table["time"].to_pylist()[2] == datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC)
    assert found == Exported(rows=5, requests=2, clicked=1, ordered=1, outcomes_without_exposure=0)


def test_a_click_at_any_showing_keeps_its_own_row(tmp_path):
    rows = [request(n, "ann", "a", n, items="xy") for n in range(3)]
    _, table = exported(tmp_path, *rows, click("e", 2, "x", 9))
    assert table["label"].to_pylist() == [0, 0, 0, 0, 1, 0]


def test_what_cannot_be_joined_is_counted(tmp_path):
    found, table = exported(
        tmp_path,
        request(0, "ann", "a", 1),
        click("e", 7, "a", 2),
        click("f", 0, "q", 2),
        click("g", 0, "a", 2),
    )
    assert found.outcomes_without_exposure == 2
    assert sum(table["label"].to_pylist()) == 1


def test_ids_are_integers_if_all_of_them_are(tmp_path):
    _, table = exported(tmp_path, request(0, "17", "a", 1, items="12"))
    assert table["user"].to_pylist() == [17, 17]
    assert table["item"].to_pylist() == [1, 2]
    _, table = exported(tmp_path, request(0, "017", "a", 1, items="12"), request(1, None, "a", 2, items="x"))
    assert table["user"].to_pylist() == ["017", "017", None]
    assert table["item"].to_pylist() == ["1", "2", "x"]


def test_ids_may_hold_anything(tmp_path):
    awkward = ["a'b", 'c"d', "e\\f", "g,h", "[i]", "ü☃", ""]
    import json

    row = RequestRow(
        "r0", 1, "o'n", "recommend", None, "a", "v", 0,
        json.dumps(awkward), json.dumps([1.0] * 7), json.dumps([1.0] * 7),
    )  # fmt: skip
    _, table = exported(tmp_path, row)
    assert table["item"].to_pylist() == awkward


def test_an_empty_log_gives_an_empty_file(tmp_path):
    found, table = exported(tmp_path)
    assert found.rows == 0
    assert table.column_names == COLUMNS


def test_the_ending_of_the_file_says_how_it_is_written(tmp_path):
    rows = request(0, "ann", "new", 5, items=["a,b", 'say "hi"']), click("e", 0, "a,b", 6)
    _, parquet = exported(tmp_path, *rows)
    export_log(log_of(*rows), tmp_path / "log.csv")
    table = pa_csv.read_csv(tmp_path / "log.csv")
    assert table.column_names == COLUMNS
    assert table["item"].to_pylist() == parquet["item"].to_pylist()
    assert table["label"].to_pylist() == [1, 0]
    with pytest.raises(ConfigError, match=r"ends in \.parquet or \.csv, and .*log\.json"):
        export_log(log_of(*rows), tmp_path / "log.json")


def test_a_disk_that_is_full_is_said_of_the_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises(ArtifactError, match=r"log\.parquet cannot be written: no space left on device"):
        exported(tmp_path, request(0, "ann", "new", 5))
    assert not list(tmp_path.iterdir())
