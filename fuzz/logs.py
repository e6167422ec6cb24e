"""Damaged exposure logs of a server."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq

from fuzz.mutators import Rng, anything, as_json, changed, damaged
from fuzz.outcomes import different, refused_or
from towpath.serving.exposure_log.tables import TABLES, AssignmentRow, OutcomeRow, RequestRow, columns_of

USERS, REQUESTS = 40, 120


class Logs:
    """Damaged logs: refused, or exported with every slot of every slate, and read as an experiment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_log(folder / "whole")
        self._whole = (folder / "whole" / "exposures-0.sqlite").read_bytes()

    def __call__(self, rng: Rng) -> str:
        log = self._folder / "log"
        shutil.rmtree(log, ignore_errors=True)
        log.mkdir()
        path = log / "exposures-0.sqlite"
        path.write_bytes(damaged(self._whole, rng) if rng.random() < 0.4 else self._whole)
        if path.read_bytes() == self._whole:
            _change_a_cell(path, rng)
        return refused_or(lambda: self._read(log))

    def _read(self, log: Path) -> str:
        from towpath.abtest.experiment import run_experiment
        from towpath.abtest.from_log import Window, experiment_log
        from towpath.abtest.metrics import metrics_named
        from towpath.abtest.sequences import Sequence
        from towpath.serving.exposure_log.export import export_log
        from towpath.serving.exposure_log.read import read_log

        tables = read_log(str(log))
        out = self._folder / "exported.parquet"
        exported = export_log(tables, out)
        slots = sum(len(json.loads(items)) for items in tables.requests["items"].to_pylist())
        different("rows of the export", exported.rows, slots)
        different("rows of the file", pq.read_metadata(out).num_rows, slots)
        found = experiment_log(tables, Window())
        run_experiment(found, metrics_named(None), Sequence(0.05, 5_000), None).to_json()
        return "read"


def make_log(folder: Path) -> None:
    """A log of two arms, with clicks and orders."""
    from towpath.serving.exposure_log.sqlite import SqliteStore

    store = SqliteStore(folder / "exposures-0.sqlite")
    slate = ("[1,2,3]", "[0.3,0.2,0.1]", "[0.5,0.3,0.2]")
    hour = 3_600_000_000
    store.write(
        [
            AssignmentRow(0, "s", '["a", "b"]', "[0.5, 0.5]"),
            *(
                RequestRow(f"r{n}", n * hour, f"{n % USERS}", "recommend", None, "ab"[n % 2], "v", 0, *slate)
                for n in range(REQUESTS)
            ),
            *(
                OutcomeRow(f"e{n}", n * hour + 1, f"r{n}", str(n % 4), kind, float(kind == "order"), 2.5)
                for n in range(REQUESTS)
                for kind in (("click",), ("order",), ())[n % 3]
            ),
        ]
    )
    store.close()


def _change_a_cell(path: Path, rng: Rng) -> None:
    """Another value in one place of one of the tables."""
    table = list(TABLES)[rng.integers(len(TABLES))]
    column = columns_of(table)[rng.integers(len(columns_of(table)))]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        rows = connection.execute(f"SELECT number, {column} FROM {table}").fetchall()
        number, old = rows[rng.integers(len(rows))]
        connection.execute(
            f"UPDATE OR IGNORE {table} SET {column} = ? WHERE number = ?", (_cell(old, rng), number)
        )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _cell(old: object, rng: Rng) -> object:
    """Another JSON value if it was one, damaged text, or anything that a table can hold."""
    if isinstance(old, str) and old.startswith("[") and rng.random() < 0.7:
        return as_json(changed(json.loads(old), rng), rng).decode(errors="replace")
    if isinstance(old, str) and rng.random() < 0.5:
        changed_text = damaged(old.encode(), rng)
        return changed_text if rng.random() < 0.5 else changed_text.decode(errors="replace")
    value = anything(rng)
    if isinstance(value, dict | list):
        return json.dumps(value)
    return str(value) if isinstance(value, int) and abs(value) >= 2**63 else value
