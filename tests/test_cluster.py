"""Spark, as a real cluster of a master and two workers: it gives what DuckDB and one process give.

One test, since a cluster takes long to start and test processes would each start their own.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import towpath
from event_files import write_slates
from spark_cluster import spark_cluster
from towpath import Cleaning, Positive
from towpath.cli import main
from towpath.data.split import load_split
from towpath.errors import ConfigError, DataError

ROWS = 300


@contextmanager
def driver_of(cluster: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """This process as a driver of the cluster."""
    from pyspark.sql import SparkSession

    master, variables = cluster
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    try:
        yield master
    finally:
        running = SparkSession.getActiveSession()
        if running is not None:
            running.stop()


def write_json(path: Path) -> Path:
    draw = np.random.default_rng(1)
    rows = [
        {"user": int(draw.integers(25)), "item": f"i{draw.integers(30)}", "event": event, "ts": int(n // 7)}
        for n, event in enumerate(draw.choice(["view", "cart", "purchase"], ROWS))
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def write_parquet(path: Path, users: int = 2500, items: int = 1000, per_user: int = 5) -> Path:
    """Enough users and items for several blocks; times tie, and the order of the file decides."""
    draw = np.random.default_rng(2)
    columns = {
        "user": draw.integers(0, users, users * per_user),
        "item": draw.integers(0, items, users * per_user),
    }
    times = pa.array(draw.integers(0, 50, users * per_user) * 10**6, pa.timestamp("us"))
    pq.write_table(pa.table({**columns, "time": times}), path, row_group_size=4096)
    return path


def check_reading_and_splitting(master: str, folder: Path) -> None:
    log = write_slates(folder / "log")
    here, there = (towpath.read(log, engine=engine) for engine in ("duckdb", master))
    assert (there.steps, there.notes, there.counts) == (here.steps, here.notes, here.counts)
    assert towpath.split(there, "time", engine=master).fingerprint == towpath.split(here, "time").fingerprint


def check_preparing(master: str, folder: Path) -> None:
    asked = {
        "positive": Positive(events=("cart", "purchase"), event_weights={"cart": 2.0}),
        "cleaning": Cleaning(repeats="last", filter="k-core", min_per_user=3, min_per_item=3),
    }
    events = write_json(folder / "e.jsonl")
    here = towpath.prepare(events, folder / "here", "random", seed=3, **asked)
    there = towpath.prepare(events, folder / "there", "random", seed=3, engine=master, **asked)
    assert there.fingerprint == here.fingerprint == load_split(folder / "there").fingerprint


def check_errors(master: str, folder: Path) -> None:
    with pytest.raises(ConfigError, match="uses Spark at"):
        towpath.read("s3a://bucket/events.csv", engine="spark://elsewhere:7077")
    (folder / "bad.csv").write_text("user,item\n1,2\n3\n")
    with pytest.raises(DataError, match=r"^Line 3 of \S+ does not parse, 2 columns were expected: '3'; mend"):
        towpath.read(folder / "bad.csv", engine=master)
    (folder / "latin.jsonl").write_bytes(
        '{"user": 1, "item": 2}\n{"user": "ü", "item": 3}\n'.encode("latin-1")
    )
    with pytest.raises(DataError, match=r"^Line 2 of \S+ should be one JSON object; mend"):
        towpath.read(folder / "latin.jsonl", engine=master)
    (folder / "empty.parquet").touch()
    with pytest.raises(DataError, match=r"^\S+empty.parquet cannot be read: Unable to infer schema [^\n]*$"):
        towpath.read(folder / "empty.parquet", engine=master)
    (folder / "no.csv").write_text("user,item,time\n1,2,soon\n3,4,5\n")
    with pytest.raises(DataError, match=r"1 of 2 does not \(first: 'soon' in line 2 of"):
        towpath.read(folder / "no.csv", engine=master)


def check_lists_and_ranks(master: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*words: object) -> dict[str, Any]:
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        assert code == 0, said.err
        return json.loads(said.out)

    run, events = folder / "run", write_parquet(folder / "e.parquet")
    small = ("--set", "epochs=1", "--set", "embedding_dim=4", "--out", run, "--json")
    fitted = told("fit", events.as_uri(), "--model", "mf", "--engine", "spark", *small)
    assert fitted["fingerprint"] == towpath.split(towpath.read(events)).fingerprint
    for where in ("here", "there"):
        engine = ("--engine", master) if where == "there" else ()
        made = told(
            "recommend", run, "--all", "-k", 5, *engine, "--out", folder / f"{where}.parquet", "--json"
        )
        assert made["users"] == fitted["users"]
    assert pq.read_table(folder / "there.parquet").equals(pq.read_table(folder / "here.parquet"))
    for protocol in ("full", "sampled"):
        here, there = (
            told("evaluate", run, "--protocol", protocol, "--engine", engine, "--json")
            for engine in ("duckdb", master)
        )
        assert there == here


@pytest.mark.slow
@pytest.mark.timeout(900)  # about a minute on two free cores
def test_a_cluster_gives_what_one_process_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with spark_cluster(tmp_path / "cluster") as cluster, driver_of(cluster, monkeypatch) as master:
        check_reading_and_splitting(master, tmp_path)
        check_preparing(master, tmp_path)
        check_errors(master, tmp_path)
        check_lists_and_ranks(master, tmp_path, capsys)
