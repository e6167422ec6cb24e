"""Logs that were damaged or edited: one sentence, and nothing is read as something else (issue 21)."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fuzz.logs import REQUESTS, make_log

from towpath.errors import LONGEST_MESSAGE, DataError
from towpath.serving.exposure_log.export import export_log
from towpath.serving.exposure_log.follow import SqliteFollower
from towpath.serving.exposure_log.read import read_log
from towpath.serving.exposure_log.store import LogError

DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    make_log(folder)
    return folder


@pytest.fixture
def log(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "log")


def changed(log: Path, *statements: str) -> str:
    with closing(sqlite3.connect(log / "exposures-0.sqlite", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return str(log)


def test_an_undamaged_log_has_a_row_for_every_slot(log: Path, tmp_path: Path) -> None:
    assert export_log(read_log(str(log)), tmp_path / "x.parquet").rows == 3 * REQUESTS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("requests SET items = '[1,'", "A slate is a JSON array of ids"),
        (f"requests SET items = '{DEEP}'", "A slate is a JSON array of ids"),
        ("requests SET items = '{\"a\": 1}'", "A slate is a JSON array of ids"),
        ("requests SET items = NULL", "A slate is a JSON array of ids"),
        ("requests SET items = '[[1], 2, 3]'", "A slate is a JSON array of ids"),
        ("requests SET scores = '[1]'", "equally many"),
        ("requests SET scores = '[\"x\", 2, 3]'", "Scores are a JSON array of numbers"),
        ("requests SET propensities = '[1e999, 2, 3]'", "Propensities lie within 0 and 1"),
        ("requests SET time = NULL", "microseconds since 1970"),
        ("requests SET time = 9223372036854775807", "microseconds since 1970"),
        ("requests SET time = 'now'", "cannot be read"),
        ("requests SET arm = NULL", "A request has an id"),
        ("requests SET arm = x'ff00'", "cannot be read"),
        ("requests SET user_id = CAST(x'ff41' AS TEXT)", "cannot be read"),
        ("outcomes SET kind = 'x'", "a click or an order"),
        ("outcomes SET units = 9e999", "Units are within 0 and 1e"),
        ("outcomes SET value = NULL", "A value is within 0 and 1e"),
        ("assignments SET arms = '{'", "The arms are a JSON array of names"),
        (f"assignments SET arms = '{DEEP}'", "The arms are a JSON array of names"),
        ("assignments SET arms = '[[1], [2]]'", "The arms are a JSON array of names"),
        ('assignments SET arms = \'["a", "a"]\'', "The name of an arm stands once"),
        ("assignments SET shares = '[1]'", "Every arm has a share"),
        ("assignments SET shares = '[\"x\", 1]'", "The shares are a JSON array of numbers"),
        ("assignments SET shares = '[NaN, 1]'", "sum to 1"),
        ("assignments SET shares = '[-1, 2]'", "sum to 1"),
    ],
)
def test_rows_that_no_server_writes_are_refused(change: str, words: str, log: Path) -> None:
    with pytest.raises(DataError, match=words) as refused:
        read_log(changed(log, f"UPDATE {change} WHERE number = 1"))
    assert len(str(refused.value)) <= LONGEST_MESSAGE
    assert "restore it from a copy" in str(refused.value)


def test_an_empty_id_is_text(log: Path, tmp_path: Path) -> None:
    place = changed(log, "UPDATE requests SET items = '[\"\", 2, 3]' WHERE number = 1")
    assert export_log(read_log(place), tmp_path / "x.parquet").rows == 3 * REQUESTS


def test_a_view_is_not_computed(log: Path) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS number FROM n"
    place = changed(log, "DROP TABLE outcomes", f"CREATE VIEW outcomes AS {endless}")
    with pytest.raises(DataError, match="outcomes is not a table"):
        read_log(place)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "exposures-0.sqlite")
    with pytest.raises(DataError, match="should be a file of an exposure log"):
        read_log(str(tmp_path))


def test_a_server_does_not_start_on_a_damaged_log(log: Path) -> None:
    """A worker reads what all workers wrote; one of their files may be none."""
    (log / "exposures-1.sqlite").write_bytes(b"no database at all" * 400)
    follower = SqliteFollower(log)
    with pytest.raises(LogError, match=r"cannot be read .*choose another --log"):
        follower.new()
    follower.close()
    (log / "exposures-1.sqlite").unlink()
    os.mkfifo(log / "exposures-1.sqlite")
    with pytest.raises(LogError, match="should be a file of an exposure log"):
        SqliteFollower(log).new()
