"""Damaged tables next to event files: logs with propensities, features, ids."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from fuzz import corpus
from fuzz.mutators import Rng, damaged
from fuzz.outcomes import different, refused_or
from fuzz.readers import rows_of
from towpath.bandit.log import read_bandit_log, read_items
from towpath.data.feature_files import read_features
from towpath.data.feature_kinds import GivenColumns
from towpath.data.id_files import read_id_file
from towpath.data.vocabulary import Vocabulary

_N = np.arange(corpus.ROWS)
LOG = pa.table(
    {
        "user_id": _N % 7, "item_id": _N % corpus.ITEMS, "position": _N % 3, "click": _N % 2,
        "propensity": np.full(corpus.ROWS, 0.25),
    }
)  # fmt: skip
FEATURES = pa.table(
    {
        "item": np.arange(30), "kind": ["a", "b", None] * 10, "price": np.arange(30) / 7,
        "tags": ["x|y", "z", ""] * 10, "bought": ["2020-01-01"] * 30,
    }
)  # fmt: skip


def _bases(table: pa.Table) -> dict[str, bytes]:
    text = corpus.lines(*corpus.csv_lines(table))
    return {"a.csv": text, "a.tsv": text.replace(b",", b"\t"), "a.parquet": corpus.parquet(table)}


BASES = {"log": _bases(LOG), "features": _bases(FEATURES), "items": _bases(FEATURES), "ids": _bases(FEATURES)}


class Tables:
    """Damaged tables: refused, or read with every row accounted for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ids = Vocabulary(pa.array(range(corpus.ITEMS)))

    def __call__(self, rng: Rng) -> str:
        kind = list(BASES)[rng.integers(len(BASES))]
        name = list(BASES[kind])[rng.integers(len(BASES[kind]))]
        content = damaged(BASES[kind][name], rng)
        path = self._folder / name
        path.write_bytes(content)
        return refused_or(lambda: self._read(kind, path, content))

    def _read(self, kind: str, path: Path, content: bytes) -> str:
        expected = rows_of(path.name, content)
        rows: int | None = None
        if kind == "log":
            rows = len(read_bandit_log(path))
        elif kind == "features":
            rows = read_features([path], "item", self._ids, GivenColumns({}, "item", None))[1].rows
        elif kind == "items":
            rows = len(read_items(path))
        else:
            read_id_file(path, "item")  # each id once
        if expected is not None and rows is not None:
            different(f"rows of {kind} {path.name}", rows, expected)
        return "read"
