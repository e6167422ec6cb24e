import csv
import gzip
import json
from datetime import UTC, date, datetime
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.data.cleaning import Cleaning
from towpath.data.columns import Columns
from towpath.data.interactions import MISSING_TIME
from towpath.data.sources import Reading, read
from towpath.errors import DataError

ALLOW = Cleaning(repeats="allow")
# One row a line of the file: user, item, rating, time. Not in time order, with a tie for user 7.
ROWS = [
    ("7", "b", 3.0, 30),
    ("12", "a", 4.0, 5),
    ("7", "a", 5.0, 10),
    ("12", "c", 1.0, 2),
    ("7", "c", 2.0, 30),
]
NAMES = ("user_id", "item_id", "rating", "timestamp")


def write_rows(path: Path, separator: str = ",", header: bool = True) -> Path:
    lines = ([separator.join(NAMES)] if header else []) + [separator.join(map(str, row)) for row in ROWS]
    path.write_text("\n".join(lines) + "\n")
    return path


def events(reading: Reading) -> list[tuple[object, ...]]:
    """The events with their own ids, in the order of the table."""
    data = reading.interactions
    users, items = data.user_ids.ids(data.users), data.item_ids.ids(data.items)
    extras = [column.tolist() for column in (data.values, data.times) if column is not None]
    return list(zip(users, items, *extras, strict=True))


# By (user, time, row of the file): the tie at 30 keeps the order of the file.
EXPECTED = [(7, "a", 5.0, 10), (7, "b", 3.0, 30), (7, "c", 2.0, 30), (12, "c", 1.0, 2), (12, "a", 4.0, 5)]


@pytest.mark.parametrize("separator", [",", "\t", "::", ";", "|", " "])
def test_every_delimiter_gives_the_same_events(tmp_path: Path, separator: str) -> None:
    assert events(read(str(write_rows(tmp_path / "events.txt", separator)))) == EXPECTED


def test_compressed_text_gives_the_same_events(tmp_path: Path) -> None:
    plain = write_rows(tmp_path / "events.csv").read_bytes()
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(plain))
    (tmp_path / "b.csv.zst").write_bytes(pa.compress(plain, "zstd", asbytes=True))
    assert events(read(str(tmp_path / "a.csv.gz"))) == EXPECTED
    assert events(read(str(tmp_path / "b.csv.zst"))) == EXPECTED


def test_windows_line_ends_quotes_and_a_byte_order_mark_are_no_part_of_the_data(tmp_path: Path) -> None:
    text = '\ufeff"user","item"\r\n"a, ""x""",1\r\nb,2\r\n'
    (tmp_path / "e.csv").write_bytes(text.encode("utf-8"))
    assert events(read(tmp_path / "e.csv")) == [('a, "x"', 1), ("b", 2)]


def test_json_lines_and_parquet_give_the_same_events(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([dict(zip(NAMES, (int(u), *rest), strict=True)) for u, *rest in ROWS])
    lines = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    (tmp_path / "e.jsonl").write_text(lines)
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    pq.write_table(table, tmp_path / "e.parquet")
    (tmp_path / "f.parquet.gz").write_bytes(gzip.compress((tmp_path / "e.parquet").read_bytes()))
    for name in ("e.jsonl", "e.jsonl.gz", "e.parquet", "f.parquet.gz"):
        assert events(read(tmp_path / name)) == EXPECTED, name


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_glob_and_a_folder_read_files_in_the_order_of_their_names(tmp_path: Path, ending: str) -> None:
    for number, item in enumerate("cab"):
        table = pa.table({"user": [1, 2], "item": [item, item]})
        path = tmp_path / f"part-{number}.{ending}"
        if ending == "parquet":
            pq.write_table(table, path)
        else:
            path.write_text(f"user,item\n1,{item}\n2,{item}\n")
    (tmp_path / "_SUCCESS").touch()
    expected = [(1, "c"), (1, "a"), (1, "b"), (2, "c"), (2, "a"), (2, "b")]
    assert events(read(tmp_path)) == expected
    assert events(read(f"{tmp_path}/part-*.{ending}")) == expected


def test_the_row_of_a_large_file_breaks_ties(tmp_path: Path) -> None:
    n = 200_000  # enough for several threads to share the file
    items = np.random.default_rng(0).permutation(n)
    (tmp_path / "e.csv").write_text("user,item,time\n" + "".join(f"{i % 2},{i},0\n" for i in items))
    data = read(tmp_path / "e.csv").interactions
    assert data.item_ids.ids(data.items[data.users == 0]) == items[items % 2 == 0].tolist()


def test_a_file_without_header_is_read_by_position_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "u.data").write_text("1\t10\t3\t881250949\n2\t20\t4\t881250950\n")
    reading = read(tmp_path / "u.data")
    assert events(reading) == [(1, 10, 3.0, 881250949), (2, 20, 4.0, 881250950)]
    assert "no header line" in reading.notes[0]
    (tmp_path / "t.data").write_text("1\t10\t881250949\n2\t20\t881250950\n")
    assert read(tmp_path / "t.data").interactions.values is None


def test_columns_can_be_given_by_position(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("x,ann\ny,bob\n")
    reading = read(tmp_path / "e.csv", columns=Columns(user="2", item="1"))
    assert events(reading) == [("ann", "x"), ("bob", "y")]


def test_text_ids_become_numbers_only_if_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("user,item\n007,1\n8,20\n8,3\n")
    data = read(tmp_path / "e.csv").interactions
    assert data.user_ids.values.to_pylist() == ["007", "8"]
    assert data.item_ids.values.to_pylist() == [1, 3, 20]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([2**63 - 1, -5], pa.int64()),
        pa.array([2**64 - 1, 3], pa.uint64()),
        pa.array([1, 2], pa.int8()),
        pa.array(["Zoë", "z o"]),
        pa.array([date(2020, 1, 2), date(2019, 1, 1)]),
        pa.array([datetime(2020, 1, 2, tzinfo=UTC), datetime(2019, 1, 1, tzinfo=UTC)]),
        pa.array([b"\xff\0", b""]),
        pa.array([1.5, -2.0]),
        pa.array([UUID(int=7).bytes, UUID(int=1).bytes], pa.uuid()),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_of_any_type_in_parquet_come_back_unchanged(tmp_path: Path, ids: pa.Array) -> None:
    pq.write_table(pa.table({"user": ids, "item": pa.array(["b", "a"])}), tmp_path / "e.parquet")
    data = read(tmp_path / "e.parquet").interactions
    assert data.user_ids.values.to_pylist() == sorted(ids.to_pylist())
    assert data.user_ids.codes(ids.to_pylist()).tolist() in ([0, 1], [1, 0])


def test_json_text_that_looks_like_a_number_or_a_date_stays_text(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text(
        '{"user": "7", "item": "2020-01-01"}\n{"user": "08", "item": "2020-01-02"}\n'
    )
    assert events(read(tmp_path / "e.jsonl")) == [("08", "2020-01-02"), ("7", "2020-01-01")]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("10", "20", (10, 20)),
        ("1.5", "2", (1_500_000, 2_000_000)),
        ("1970-01-01", "1970-01-01T00:00:01Z", (0, 1_000_000)),
        ("1970-01-01T01:00:00+01:00", "1970-01-01 00:00:02", (0, 2_000_000)),
        (
            "Thu Jan 01 00:00:00 -0100 1970",
            "Tue Oct 17 09:40:11 -0700 2017",
            (3_600_000_000, 1508258411000000),
        ),
        ("", "20", (MISSING_TIME, 20)),
    ],
)
def test_times_of_every_form_become_numbers(
    tmp_path: Path, first: str, second: str, expected: tuple[int, int]
) -> None:
    (tmp_path / "e.csv").write_text(f"user,item,time\na,x,{first}\nb,y,{second}\n")
    times = read(tmp_path / "e.csv").interactions.times
    assert times is not None
    assert tuple(times.tolist()) == expected


def test_parquet_timestamps_become_microseconds(tmp_path: Path) -> None:
    times = pa.array([datetime(1970, 1, 1, 0, 0, 1), datetime(1970, 1, 1)])
    pq.write_table(pa.table({"user": [1, 2], "item": [1, 2], "ts": times}), tmp_path / "e.parquet")
    found = read(tmp_path / "e.parquet").interactions.times
    assert found is not None
    assert found.tolist() == [1_000_000, 0]


def test_propensity_and_exposure_are_read_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("user,item,propensity,shown\n1,1,0.25,true\n2,2,1,0\n")
    data = read(tmp_path / "e.csv").interactions
    assert data.propensities is not None
    assert data.exposures is not None
    assert data.propensities.tolist() == [0.25, 1.0]
    assert data.exposures.tolist() == [True, False]


def test_a_missing_rating_is_not_a_number(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("user,item,rating\n1,1,\n2,2,3\n")
    values = read(tmp_path / "e.csv").interactions.values
    assert values is not None
    assert np.isnan(values[0])
    assert values[1] == 3


def test_latin_1_is_read_and_said(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_bytes("user,item\nJosé,1\nann,2\n".encode("latin-1"))
    reading = read(tmp_path / "e.csv")
    assert events(reading) == [("José", 1), ("ann", 2)]
    assert any("Latin-1" in note for note in reading.notes)


BAD_TEXT = {
    "empty": ("", "should hold events but is empty"),
    "header only": ("user,item\n", "has no rows"),
    "short line": (
        "user,item,rating\n1,2,3\n4,5\n6,7,8\n",
        "Line 3 of .* 3 columns were expected and 2 found",
    ),
    "long line": ("user,item\n1,2\n4,5,6\n", "Line 3 of .* does not parse"),
    "open quote": ('user,item\n1,2\n"4,5\n', "does not parse|cannot be read"),
    "double header": ("user,item,user\n1,2,3\n", "'user' 2 times"),
    "no user": ("user,item\n1,2\n,5\n,6\n", r"needs a user .*; 2 of 3 do not \(first: line 3 of"),
    "no item": ("user,item\n1,\n2,5\n", "needs an item"),
    "text rating": (
        "user,item,rating\n1,2,3\n4,5,good\n",
        r"numbers; 1 of 2 does not \(first: 'good' in line 3",
    ),
    "infinite rating": ("user,item,rating\n1,2,3\n4,5,inf\n", "should hold numbers; 1 of 2"),
    "mixed times": (
        "user,item,time\n1,2,3\n1,3,4\n4,5,2020-01-01\n",
        r"should all be integers; 1 of 3 does not \(first: '2020-01-01' in line 4",
    ),
    "nonsense times": ("user,item,time\n1,2,soon\n4,5,late\n", "2 of 2 do not .*'soon'"),
    "unknown names": ("who,what\n1,2\n", "No column .* usual name for the user; columns there: who, what"),
    "one column": ("user\n1\n", "at least a user and an item"),
    "bad propensity": ("user,item,propensity\n1,2,0\n3,4,1\n", "above 0 and at most 1; 1 of 2"),
    "bad exposure": ("user,item,shown\n1,2,perhaps\n3,4,1\n", "true or false"),
    "one user": ("user,item\n1,2\n1,3\n", "'read' there is one user only"),
    "one item": ("user,item\n1,2\n2,2\n", "one item only"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_text_is_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    text, expected = BAD_TEXT[case]
    (tmp_path / "e.csv").write_text(text)
    with pytest.raises(DataError, match=expected) as caught:
        read(tmp_path / "e.csv", cleaning=ALLOW)
    assert "\n" not in str(caught.value)


def test_the_place_of_a_bad_row_names_the_file_among_several(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("user,item\n5,6\n,7\n")
    with pytest.raises(DataError, match=r"line 3 of .*b\.csv"):
        read(tmp_path)


def test_a_bad_json_line_is_named(tmp_path: Path) -> None:
    good = '{"user": 1, "item": 2}\n' * 500
    for bad in ('{"user": 1,\n', "nonsense\n", "[1, 2]\n"):
        (tmp_path / "e.jsonl").write_text(good + bad + good)
        with pytest.raises(DataError, match=r"Line 501 of .*e\.jsonl should be one JSON object"):
            read(tmp_path / "e.jsonl")


def test_json_ids_that_mix_text_and_numbers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"user": 1, "item": 2}\n{"user": "1", "item": 3}\n')
    with pytest.raises(DataError, match="all text or all numbers"):
        read(tmp_path / "e.jsonl")


def test_damaged_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    n = 50_000
    table = pa.table({"user": np.arange(n) % 100, "item": np.arange(n)})
    pq.write_table(table, tmp_path / "e.parquet")
    whole = (tmp_path / "e.parquet").read_bytes()
    with (tmp_path / "e.csv").open("w") as file:
        csv.writer(file).writerows([("user", "item"), *zip(*table.to_pydict().values(), strict=True)])
    packed = gzip.compress((tmp_path / "e.csv").read_bytes())
    bad = {
        "cut.parquet": whole[: len(whole) // 2],
        "changed.parquet": whole[:5000] + b"\xff" * 100 + whole[5100:],
        "short.parquet": b"PAR1",
        "cut.csv.gz": packed[: len(packed) // 2],
        "no.csv.gz": b"plainly no gzip",
        "junk.csv": np.random.default_rng(0).bytes(5000),
        "archive.zip": b"PK\3\4" + bytes(50),
    }
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=name) as caught:
            read(tmp_path / name)
        assert "\n" not in str(caught.value), name


def test_nested_ids_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"user": [[1], [2]], "item": [1, 2]}), tmp_path / "e.parquet")
    with pytest.raises(DataError, match="should be a number, text, date or UUID"):
        read(tmp_path / "e.parquet")
