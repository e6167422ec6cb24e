"""Results on disk, each in one file that is named after everything its numbers depend on.

A key holds the data, the recipe, the evaluation and the code version; its hash is the name of the file. The
same request finds the same file. A changed setting, other data or changed code give another name, so an old
result is never returned for it. A file is Parquet: columns of numbers, and JSON in its metadata.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from towpath.boundary import stored
from towpath.data.parquet import read_table
from towpath.errors import ArtifactError, ConfigError
from towpath.experiments.code_version import code_version, outside_sources
from towpath.files import is_free, new_file, refuse_unwritable
from towpath.locks import locked
from towpath.methods.recipe import Recipe

FOLDER = "results"  # of every --out folder
# Grows when the form of the files changes.
_FORMAT = 2
_METADATA = b"towpath"
# How earlier versions stored results: of compare, of paper, and of closed loops.
_EARLIER = ("fits", "cells", "*/round-*.parquet")

Json = dict[str, Any]  # a JSON object


@dataclass(frozen=True)
class Entry:
    """What is stored: columns of numbers, all of one length, and whatever else JSON can hold."""

    columns: Mapping[str, NDArray[Any]]
    notes: Json


class Storable(Protocol):
    """A result that can be stored; `kind` is part of the names of its files."""

    kind: ClassVar[str]

    def to_entry(self) -> Entry:
        """The result as columns and JSON."""

    @classmethod
    def from_entry(cls, entry: Entry) -> Self:
        """The result that `to_entry` was called on."""


Result = TypeVar("Result", bound=Storable)


@dataclass(frozen=True)
class ResultKey:
    """Everything that a result depends on, as JSON text; `name` is its hash."""

    text: str

    @property
    def name(self) -> str:
        """What the files of the result are called."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class ResultStore:
    """A folder of results. `code` is the version of the code that made them, or a name that stands for it."""

    folder: Path
    code: str = field(default_factory=code_version)

    def key(self, *, data: str, recipe: Recipe | None, **more: Any) -> ResultKey:  # any JSON
        """The key of what a recipe gives on these data (their fingerprint); `more` is the evaluation."""
        about = {"format": _FORMAT, "code": self.code, "data": data, **more, "recipe": None}
        if recipe is not None:
            about |= {"recipe": recipe.resolved(), "sources": outside_sources(recipe)}
        return ResultKey(json.dumps(about, sort_keys=True))

    def path(self, kind: type[Storable], name: str) -> Path:
        """The file of a result of this kind, stored or not."""
        return self.folder / f"{name}.{kind.kind}.parquet"

    def get(self, kind: type[Result], name: str) -> Result | None:
        """The result of this name; None if there is none."""
        path = self.path(kind, name)
        return _opened(kind, path) if path.is_file() else None

    def has(self, kind: type[Storable], name: str) -> bool:
        """Whether there is such a result."""
        return self.path(kind, name).is_file()

    def put(self, key: ResultKey, result: Storable) -> None:
        """Store a result."""
        entry = result.to_entry()
        table = pa.table(dict(entry.columns))
        notes = {"key": json.loads(key.text), "notes": entry.notes, "digest": _digest(table, entry.notes)}
        table = table.replace_schema_metadata({_METADATA: json.dumps(notes)})
        with new_file(self.path(type(result), key.name)) as partial:
            _write_small(table, partial)

    def results(self, kind: type[Result]) -> Iterator[tuple[str, Result]]:
        """Every result of this kind and this code version with its name, in the order of storage."""
        paths = self.folder.glob(f"*.{kind.kind}.parquet")
        for path in sorted(paths, key=lambda path: (path.stat().st_mtime_ns, path.name)):
            if _metadata(path, pq.read_schema)["key"].get("code") == self.code:
                yield path.name.partition(".")[0], _opened(kind, path)

    def notes(self, kind: type[Storable]) -> Iterator[tuple[Json, Json]]:
        """Key and notes of every result of this kind, of any version of the code; no column is read."""
        for path in sorted(self.folder.glob(f"*.{kind.kind}.parquet")):
            metadata = _metadata(path, pq.read_schema)
            yield metadata["key"], metadata["notes"]

    def keys(self, kind: type[Storable]) -> Iterator[Json]:
        """The key of every result of this kind, of any version of the code."""
        return (key for key, _ in self.notes(kind))

    def claim(self, name: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Whether this process is the one to compute the result of this name, within the block."""
        return locked(self.claim_path(name), wait=wait)

    def claim_path(self, name: str) -> Path:
        """The lock file of a result that is being computed."""
        return self.folder / f".{name}.lock"


def open_store(out: Path, code: str = "") -> ResultStore:
    """The store in an --out folder."""
    refuse_earlier(out)
    return ResultStore(out / FOLDER, code or code_version())


def refuse_foreign(out: Path) -> None:
    """Raise unless results can be stored in this --out folder; to be called before the work begins."""
    refuse_unwritable(out / FOLDER)
    refuse_earlier(out)
    if not is_free(out) and not (out / FOLDER).is_dir():
        raise ConfigError(f"{out} holds something else: it has no folder {FOLDER}; choose another --out.")


def refuse_earlier(out: Path) -> None:
    """Raise if an earlier version of towpath stored its results in this folder."""
    earlier = [path for pattern in _EARLIER for path in out.glob(pattern)]
    if earlier and not (out / FOLDER).exists():
        raise ArtifactError(
            f"{out} was written by an earlier version of towpath ({earlier[0].name}); its results do not say "
            "which code made them and cannot be used: choose another --out."
        )


def _opened(kind: type[Result], path: Path) -> Result:
    """The result in this file, once it is proved to be what was stored under its name."""
    table = read_table(path)
    metadata = _metadata(path, lambda _: table.schema)
    name = ResultKey(json.dumps(metadata["key"], sort_keys=True)).name
    known = metadata.get("digest")  # which earlier versions did not store
    if path.name.partition(".")[0] != name or known not in (None, _digest(table, metadata["notes"])):
        raise ArtifactError(f"{path} was changed, or is the result of something else; delete it.")
    with stored(path, "delete it"):
        columns = {n: table.column(n).to_numpy(zero_copy_only=False).copy() for n in table.column_names}
        return kind.from_entry(Entry(columns, metadata["notes"]))


def _write_small(table: pa.Table, path: Path) -> None:
    """Write a table in as few bytes as Parquet needs: thousands of results may go into a repository."""
    counts = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    with pq.ParquetWriter(
        path,
        table.schema,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in table.column_names if name not in counts],
        column_encoding=dict.fromkeys(counts, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        store_schema=False,  # it would hold the notes a second time
    ) as file:
        file.write_table(table)
        file.add_key_value_metadata(table.schema.metadata)


def _digest(table: pa.Table, notes: Json) -> str:
    """A checksum of all that a file holds, whatever its bytes are."""
    digest = hashlib.sha256(json.dumps(notes, sort_keys=True).encode())
    for name in table.column_names:
        column = table.column(name).to_numpy(zero_copy_only=False)
        digest.update(f"{name} {column.dtype} {column.shape}".encode())
        # Texts are objects, whose bytes would be addresses.
        digest.update(repr(column.tolist()).encode() if column.dtype.hasobject else column.tobytes())
    return digest.hexdigest()


def _metadata(path: Path, schema_of: Any) -> Json:  # a function from the path to its schema
    try:
        metadata: Json = json.loads(schema_of(path).metadata[_METADATA])
        if not (isinstance(metadata["key"], dict) and isinstance(metadata["notes"], dict)):
            raise TypeError("key and notes are JSON objects")
    except (OSError, ValueError, LookupError, TypeError, RecursionError, pa.ArrowException) as error:
        raise ArtifactError(f"{path} is not a stored result, or is damaged; delete it.") from error
    return metadata
