"""Damaged event files."""

import csv
import gzip
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz import corpus
from fuzz.mutators import Rng, damaged
from fuzz.outcomes import SilentDifferenceError, different, refused_or
from towpath.data.cleaning import Cleaning
from towpath.data.interactions import Interactions
from towpath.data.sources import read

EVENTS = corpus.table(rating=np.arange(corpus.ROWS) % 5 + 1.0)


def _text(delimiter: str) -> bytes:
    rows = [line.split(",") for line in corpus.csv_lines(EVENTS)]
    return "".join(delimiter.join(row) + "\n" for row in rows).encode()


NULLS = pa.table({**{n: EVENTS.column(n) for n in EVENTS.column_names}, "note": [None, "a"] * 30})
BASES = {
    "a.csv": _text(","),
    "a.tsv": _text("\t"),
    "a.dat": _text("::"),
    "a.jsonl": "".join(json.dumps(row) + "\n" for row in EVENTS.to_pylist()).encode(),
    "a.parquet": corpus.parquet(EVENTS, compression="none"),
    "b.parquet": corpus.parquet(NULLS, row_group_size=13),
    "a.csv.gz": gzip.compress(_text(",")),
}


class Readers:
    """Damaged event files: refused, or read with every row accounted for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._right = read(self._write("a.csv", BASES["a.csv"])).interactions

    def __call__(self, rng: Rng) -> str:
        if rng.random() < 0.15:
            return self._same(rng)
        name = list(BASES)[rng.integers(len(BASES))]
        if name == "a.csv.gz" and rng.random() < 0.7:
            content = gzip.compress(damaged(BASES["a.csv"], rng), 1)
        else:
            content = damaged(BASES[name], rng)
        path = self._write(name, content)
        return refused_or(lambda: self._read(path, content))

    def _read(self, path: Path, content: bytes) -> str:
        found = read(path, cleaning=Cleaning(repeats="allow", missing="drop"), complete=False)
        dropped = sum(step.dropped_rows for step in found.steps)
        different("rows", found.counts.rows, len(found.interactions) + dropped)
        expected = rows_of(path.name, content)
        if expected is not None:
            different(f"rows of {path.name}", found.counts.rows, expected)
        return "read"

    def _same(self, rng: Rng) -> str:
        """The same events written in another valid way."""
        content, name = _rewritten(rng)
        found = read(self._write(name, content)).interactions
        for column in ("users", "items", "times", "values"):
            if not np.array_equal(getattr(found, column), getattr(self._right, column)):
                raise SilentDifferenceError(f"{column} of {name}")
        different("ids", _ids(found), _ids(self._right))
        return "same"

    def _write(self, name: str, content: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(content)
        return path


def _ids(found: Interactions) -> list[str]:
    return [str(one) for ids in (found.user_ids, found.item_ids) for one in ids.values.to_pylist()]


def rows_of(name: str, content: bytes) -> int | None:
    """How many rows another reader finds; None where it does not say."""
    try:
        if name.endswith(".parquet"):
            return pq.read_table(io.BytesIO(content)).num_rows
        if name.endswith(".gz"):
            content = gzip.decompress(content)
        text = content.decode("latin-1").removeprefix("\xef\xbb\xbf")
        if name.endswith(".jsonl"):
            return sum(bool(line.strip()) for line in text.replace("\r", "\n").split("\n"))
        if name.endswith(".dat") or '"' in text:
            return None  # dialects differ about stray quotes
        lines = [
            row for row in csv.reader(io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))) if row
        ]
        return len(lines) - 1 if any(ord(c) >= 65 for c in "".join(lines[0])) else None
    except Exception:  # another reader's opinion, wanted only if it has one
        return None


def _rewritten(rng: Rng) -> tuple[bytes, str]:
    ends = ("\n", "\r\n", "\r")
    order = rng.permutation(4)
    quoted = rng.random() < 0.5
    one_end = ends[rng.integers(3)] if rng.random() < 0.5 else None
    text = "\n" * int(rng.integers(3)) if rng.random() < 0.2 else ""
    for line in corpus.csv_lines(EVENTS):
        cells = [line.split(",")[place] for place in order]
        cells = [f'"{cell}"' if quoted or rng.random() < 0.1 else cell for cell in cells]
        text += ",".join((*cells, '"a\r\nb"')) + (one_end or ends[rng.integers(3)])
        if rng.random() < 0.05:
            text += one_end or "\n"
    text = text.replace('"a\r\nb"', "note", 1)
    content = (b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + text.encode()
    return (gzip.compress(content, 1), "a.csv.gz") if rng.random() < 0.2 else (content, "a.csv")
