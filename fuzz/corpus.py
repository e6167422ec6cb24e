"""Hostile event files, written by this script: python -m fuzz.corpus FOLDER.

Each entry says what must happen: the file is read with so many rows, or it is refused with one sentence.
"""

import gzip
import io
import json
import os
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

REFUSED = -1
USERS, ITEMS = 12, 5
ROWS = USERS * ITEMS


@dataclass(frozen=True)
class Hostile:
    """One file: its name, what is in it, and how many rows must be read from it."""

    name: str
    content: Callable[[], bytes]
    rows: int = REFUSED
    options: tuple[str, ...] = ()


def table(**more: object) -> pa.Table:
    """60 events of 12 users on 5 items, with further columns."""
    users, items = np.divmod(np.arange(ROWS), ITEMS)
    return pa.table({"user": users, "item": items, "time": np.arange(ROWS) * 7, **more})


def csv_lines(table: pa.Table) -> list[str]:
    """The lines of a CSV file with a header."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [",".join(table.column_names), *(",".join(map(str, row)) for row in rows)]


def parquet(table: pa.Table, **options: object) -> bytes:
    """The table as a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def wrong_statistics(old: int, new: int) -> bytes:
    """A Parquet file whose footer says `new` wherever the least or largest value of a group is `old`."""
    whole = parquet(table(), row_group_size=10, compression="none")
    start = len(whole) - 8 - struct.unpack("<I", whole[-8:-4])[0]
    footer = whole[start:].replace(struct.pack("<q", old), struct.pack("<q", new))
    assert footer != whole[start:], "the value is not among the statistics"
    return whole[:start] + footer


def lines(*text: str, end: str = "\n") -> bytes:
    """Lines of text."""
    return "".join(line + end for line in text).encode()


def with_time(time: object) -> bytes:
    """The usual events, the third of which has another time."""
    rows = csv_lines(table())
    rows[3] = ",".join((*rows[3].split(",")[:2], str(time)))
    return lines(*rows)


def parquet_times(*times: float) -> bytes:
    """The usual events with these times in front of the usual ones."""
    column = [*times, *map(float, range(ROWS - len(times)))]
    return parquet(table().set_column(2, "time", pa.array(column, pa.float64())))


def damaged(whole: bytes, place: float) -> bytes:
    """The bytes with a run of them overwritten, from this share of the file on."""
    start = int(len(whole) * place)
    return whole[:start] + b"\xff" * 24 + whole[start + 24 :]


def nested(depth: int) -> str:
    """A JSON value of this depth."""
    return "[" * depth + "]" * depth


def json_lines(*more: str) -> bytes:
    """The usual events as JSON lines, then these."""
    rows = table().to_pylist()
    return lines(*map(json.dumps, rows), *more)


def mixed_ends() -> bytes:
    """The usual events with line ends of all three kinds, and quoted line ends that must stay."""
    ends = ("\n", "\r\n", "\r")
    rows = csv_lines(table())
    rows[0] += ",note"
    text = "".join(
        f"{row}{'' if not n else (chr(44) + chr(34) + 'a' + ends[n % 2] + 'b' + chr(34))}{ends[n % 3]}"
        for n, row in enumerate(rows)
    )
    return text.encode()


def archive(name: str, *, encrypted: bool = False, cut: int = 0) -> bytes:
    """A zip archive with one file of events; its flag can say that it is encrypted."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, b"1::2::3::4\n" * 100)
    whole = bytearray(buffer.getvalue())
    if encrypted:
        whole[6] |= 1
        directory = whole.index(b"PK\1\2")
        whole[directory + 8] |= 1
    return bytes(whole[: len(whole) - cut])


def bomb() -> bytes:
    """A gzip file of 300 kB that unpacks to 320 MB of rows."""
    head, body = gzip.compress(lines("user,item")), gzip.compress(b"1,2\n" * (1 << 22))
    return head + body * 20


ZONED = pa.array(np.arange(ROWS) * 10**6, pa.timestamp("us", "Europe/Vienna"))
LISTS = pa.array([[n] for n in range(ROWS)], pa.list_(pa.int64()))
LABEL, VALUE = ("--label-col", "label"), ("--value-col", "value")

FILES = (
    # Valid, and to be read.
    Hostile("cr.csv", lambda: lines(*csv_lines(table()), end="\r"), ROWS),
    Hostile("crlf.csv", lambda: lines(*csv_lines(table()), end="\r\n"), ROWS),
    Hostile("mixed_ends.csv", mixed_ends, ROWS),
    Hostile("cr.jsonl", lambda: json_lines().replace(b"\n", b"\r"), ROWS),
    Hostile("no_last_end.csv", lambda: lines(*csv_lines(table()))[:-1], ROWS),
    Hostile("bom.csv", lambda: b"\xef\xbb\xbf" + lines(*csv_lines(table())), ROWS),
    Hostile("blank_lines.csv", lambda: lines("", *csv_lines(table()), "", ""), ROWS),
    Hostile("quotes_within.csv", lambda: lines(*csv_lines(table(note=['5" disk'] * ROWS))), ROWS),
    Hostile("file_row_number.parquet", lambda: parquet(table(file_row_number=np.arange(ROWS)[::-1])), ROWS),
    Hostile("file_index.parquet", lambda: parquet(table(file_index=np.zeros(ROWS))), ROWS),
    Hostile("file_row.parquet", lambda: parquet(table(file_row=np.zeros(ROWS))), ROWS),
    Hostile("zoned_times.parquet", lambda: parquet(table().set_column(2, "time", ZONED)), ROWS),
    Hostile("nan_times.parquet", lambda: parquet_times(float("nan")), ROWS),
    Hostile("injection.csv", lambda: lines('user,item,"time""; DROP TABLE x; --"', "1,2,3", "2,1,4"), 2),
    # Statistics that do not fit the pages: read whole.
    Hostile("wrong_largest.parquet", lambda: wrong_statistics(11, 3), ROWS),
    Hostile("wrong_least.parquet", lambda: wrong_statistics(0, 9), ROWS),
    Hostile("wrong_group.parquet", lambda: wrong_statistics(4, 400), ROWS),
    # Damaged or not what the name says.
    Hostile("empty.csv", lambda: b""),
    Hostile("empty.parquet", lambda: b""),
    Hostile("only_header.csv", lambda: lines("user,item,time")),
    Hostile("footer_damaged.parquet", lambda: damaged(parquet(table()), 0.93)),
    Hostile("pages_damaged.parquet", lambda: damaged(parquet(table()), 0.001)),
    Hostile("cut.parquet", lambda: parquet(table())[:-200]),
    Hostile("text.parquet", lambda: lines(*csv_lines(table()))),
    Hostile("cut.csv.gz", lambda: gzip.compress(lines(*csv_lines(table())))[:-40]),
    Hostile("bomb.csv.gz", lambda: bomb()),
    Hostile("binary.csv", lambda: bytes(range(256)) * 20),
    Hostile("unclosed_quote.csv", lambda: lines("user,item,time", '1,"2,3', "1,2,3", "2,1,4")),
    Hostile("zip.csv", lambda: archive("events.csv")),
    Hostile("long_header.csv", lambda: lines("user,item," + "x" * 200_000, "1,2,3", "2,1,4")),
    Hostile("long_field.csv", lambda: lines("user,item", "1," + "y" * 3_000_000, "2,1")),
    # Values.
    Hostile("time_nan.csv", lambda: with_time("nan")),
    Hostile("time_1e30.csv", lambda: with_time("1e30")),
    Hostile("time_2_64.csv", lambda: with_time(2**64)),
    Hostile("time_inf.parquet", lambda: parquet_times(float("inf"))),
    Hostile("time_1e30.parquet", lambda: parquet_times(1e30)),
    Hostile(
        "time_2_64.parquet",
        lambda: parquet(table().set_column(2, "time", pa.array([2**64 - 1] * ROWS, pa.uint64()))),
    ),
    Hostile("time_list.parquet", lambda: parquet(table().set_column(2, "time", LISTS))),
    Hostile("user_list.parquet", lambda: parquet(table().set_column(0, "user", LISTS))),
    Hostile("label_list.parquet", lambda: parquet(table(label=LISTS)), options=LABEL),
    Hostile("value_list.parquet", lambda: parquet(table(value=LISTS)), options=VALUE),
    Hostile("label_zoned.parquet", lambda: parquet(table(label=ZONED)), options=LABEL),
    Hostile("value_huge.csv", lambda: lines("user,item,value", "1,2,1e300", "2,1,1"), options=VALUE),
    Hostile("deep.jsonl", lambda: json_lines('{"user": 1, "item": 2, "more": ' + nested(200_000) + "}")),
    Hostile("deep_first.jsonl", lambda: lines('{"user": 1, "item": ' + nested(200_000) + "}")),
    Hostile("deep_key.json", lambda: lines('{"a": ' * 100_000)),
    Hostile("surrogate.jsonl", lambda: json_lines('{"user": "\\ud800", "item": 1}')),
    Hostile("half_line.jsonl", lambda: json_lines('{"user": 1, "item"')),
    Hostile("two_on_a_line.jsonl", lambda: json_lines('{"user": 1, "item": 2} {"user": 3, "item": 4}')),
)
ARCHIVES = {
    "encrypted": lambda: archive("ml-1m/ratings.dat", encrypted=True),
    "cut": lambda: archive("ml-1m/ratings.dat", cut=30),
    "text": lambda: b"no archive at all",
    "outside": lambda: archive("../../ratings.dat"),
}


def write(folder: Path, name: str = "") -> Iterator[tuple[Hostile, Path]]:
    """Each entry (or the one of this name) with its file, written into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in FILES:
        if name in ("", entry.name):
            path = folder / entry.name
            path.write_bytes(entry.content())
            yield entry, path


if __name__ == "__main__":
    for written, where in write(Path(sys.argv[1])):
        what = "refused" if written.rows == REFUSED else f"{written.rows} rows"
        print(f"{where}{os.sep if where.is_dir() else ''}: {what}")
