"""Rows are counted without the engine, and a file that it would read in part is refused."""

import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz import corpus
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.data import census
from towpath.data.census import count_parquet, count_text, write_plain_ends
from towpath.data.cleaning import Cleaning
from towpath.data.columns import Columns
from towpath.data.layout import Layout
from towpath.data.sources import find_files, read
from towpath.errors import LONGEST_MESSAGE, DataError

COMMA = Layout("delimited", None, delimiter=",")


def columns_of(entry: corpus.Hostile) -> Columns:
    pairs = zip(entry.options[::2], entry.options[1::2], strict=True)
    return Columns(**{option.removeprefix("--").removesuffix("-col"): name for option, name in pairs})


@pytest.mark.parametrize("entry", corpus.FILES, ids=lambda entry: entry.name)
def test_every_hostile_file_is_read_whole_or_refused(entry: corpus.Hostile, tmp_path: Path) -> None:
    ((_, path),) = corpus.write(tmp_path, entry.name)
    if entry.rows == corpus.REFUSED:
        with pytest.raises(DataError) as raised:
            read(path, columns=columns_of(entry), cleaning=Cleaning(repeats="allow"))
        assert len(str(raised.value)) <= LONGEST_MESSAGE
        return
    found = read(path, columns=columns_of(entry), cleaning=Cleaning(repeats="allow"))
    assert found.counts.rows == len(found.interactions) == entry.rows


def test_wrong_statistics_change_nothing_about_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "wrong.parquet").write_bytes(corpus.wrong_statistics(11, 3))
    (tmp_path / "right.parquet").write_bytes(corpus.parquet(corpus.table(), row_group_size=10))
    wrong, right = (read(tmp_path / f"{name}.parquet").interactions for name in ("wrong", "right"))
    for column in ("users", "items", "times"):
        np.testing.assert_array_equal(getattr(wrong, column), getattr(right, column))


def test_lost_rows_are_refused_even_if_the_engine_loses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count is what stands between a reader that loses rows and a model that learns from the rest."""
    monkeypatch.setattr("towpath.data.scan._BY_STATISTICS", ("row_group_pruner",))
    (tmp_path / "a.parquet").write_bytes(corpus.wrong_statistics(11, 3))
    with pytest.raises(DataError, match="holds 60 rows, 0 of them without a user or an item, but 50"):
        read(tmp_path / "a.parquet")


def test_rows_without_ids_are_counted_by_arrow(tmp_path: Path) -> None:
    table = pa.table({"user": [1, None, 2, None], "item": [1, 2, None, None], "time": [1, 2, 3, 4]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert count_parquet([tmp_path / "a.parquet"], ("user", "item")) == census.ParquetCensus(4, 3)
    with pytest.raises(DataError, match=r"Every event needs a user .*2 of 4"):
        read(tmp_path / "a.parquet")
    kept = read(tmp_path / "a.parquet", cleaning=Cleaning(missing="drop"), complete=False)
    assert (kept.counts.rows, len(kept.interactions), kept.steps[1].dropped_rows) == (4, 1, 3)


cells = st.text(st.sampled_from('ab,"\r\n '), max_size=6)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=8), ends=st.lists(st.sampled_from("nrb")))
def test_records_are_counted_whatever_is_quoted(
    rows: list[tuple[str, str]], ends: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("text")
    text = "a,b\n"
    for n, row in enumerate(rows):
        end = {"n": "\n", "r": "\r", "b": "\r\n"}[ends[n % len(ends)]] if ends else "\n"
        text += ",".join(f'"{cell.replace(chr(34), 2 * chr(34))}"' for cell in row) + end
    (folder / "a.csv").write_bytes(text.encode())
    for block in (1, 7, 1 << 22):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(census, "BLOCK_BYTES", block)
            assert count_text(folder / "a.csv", COMMA).records == len(rows) + 1
            write_plain_ends(folder / "a.csv", COMMA, folder / "b.csv")
    import csv

    with (folder / "b.csv").open(newline="", encoding="utf-8") as file:
        assert [tuple(row) for row in csv.reader(file)][1:] == rows


def test_copies_are_read_in_place_of_odd_line_ends_and_named_by_the_original(tmp_path: Path) -> None:
    rows = ["user,item,note", '1,2,"a\r\nb"', "2,1,c", "1,1"]
    data = tmp_path / "a.csv"
    data.write_bytes(f"{rows[0]}\n{rows[1]}\r\n{rows[2]}\r{rows[3]}\n".encode())
    with pytest.raises(DataError, match=r"Line 4 of .*a\.csv does not parse, 3 columns were expected"):
        read(data)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_a_compressed_file_is_counted_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"user,item\r1,2\r2,1\r"))
    assert len(read(tmp_path / "a.csv.gz").interactions) == 2


def test_pipes_devices_and_odd_paths_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path, why in (
        (str(tmp_path / "pipe.csv"), "it is a pipe or a device"),
        ("/dev/zero", "it is a pipe or a device"),
        ("", "should not be empty"),
        ("  ", "should not be empty"),
        ("~nosuchuser/x.csv", "cannot be read"),
        ("a\0b.csv", "cannot be read|There is no file"),
        ("x" * 5000 + ".csv", "cannot be read|There is no file"),
    ):
        with pytest.raises(DataError, match=why) as raised:
            find_files(path)
        assert len(str(raised.value)) <= LONGEST_MESSAGE
