import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from towpath.data.engine import engine, quote_literal
from towpath.data.sources import read
from towpath.data.spark_session import java_environment
from towpath.errors import ConfigError, DataError


def test_text_survives_quoting() -> None:
    with engine() as connection:
        for value in ("it's", "", "a''b", "\\", "naïve"):
            assert connection.execute(f"SELECT {quote_literal(value)}").fetchall() == [(value,)]


def test_too_little_room_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towpath.data.engine.LEAST_MEGABYTES", 1)
    monkeypatch.setattr("towpath.data.engine.MEGABYTES_PER_THREAD", 1)
    rows = np.random.default_rng(0).integers(0, 10**6, size=(50_000, 2))
    (tmp_path / "e.csv").write_text("user,item\n" + "".join(f"{u},{i}\n" for u, i in rows.tolist()))
    with pytest.raises(DataError, match="needs more room") as caught:
        read(tmp_path / "e.csv")
    assert "\n" not in str(caught.value)


def test_an_engine_that_does_not_exist_is_one_sentence(events: Path) -> None:
    with pytest.raises(ConfigError, match="duckdb, spark or the address of a Spark master"):
        read(events, engine="sparks")


def test_spark_without_its_extra_is_one_sentence(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towpath.data.spark_session.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'towpath\[cluster\]'"):
        read(events, engine="spark")


def test_a_java_of_the_extra_is_used_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    home = Path(java_environment()["JAVA_HOME"])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    words = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    assert 'version "17.' in said
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_environment() == {}


def test_importing_towpath_does_not_import_spark() -> None:
    code = "import sys, towpath.cli, towpath.data.sources; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_address_needs_spark() -> None:
    with pytest.raises(DataError, match="addresses are read by --engine spark"):
        read("s3a://bucket/events.parquet")
