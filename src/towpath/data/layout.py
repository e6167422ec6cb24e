"""How a file is laid out: format, compression, delimiter and column names, from its name and first lines."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

import pyarrow as pa

from towpath.checksums import MANIFEST
from towpath.errors import DataError

Kind = Literal["delimited", "parquet", "json", "frame"]
# A local file, or an address that Spark knows, such as s3a://bucket/events.parquet.
File = Path | str

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
KINDS: dict[str, Kind] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat", ".data", ".tab", ".inter"), "delimited"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "json"),
}
DELIMITERS = ("::", "\t", ",", ";", "|")
PEEK_BYTES = 1 << 20
# Keys of a JSON line may be left out, so one line does not show them all.
PEEK_LINES = 200


@dataclass(frozen=True)
class Layout:
    """What must be known of a file before its rows can be read."""

    kind: Kind
    compression: str | None
    first_line: tuple[str, ...] = ()  # the names, unless the file has no header; empty for Parquet
    delimiter: str = ","


def layout_of(path: File, *, one_column: bool = False, head: bytes | None = None) -> Layout:
    """The layout of one file; raises for what is empty, binary or of no known format.

    A text file of events needs two columns at least; other tables may have `one_column`. `head` is how a file
    begins that is not on this machine.
    """
    compression = COMPRESSIONS.get(Path(path).suffix)
    head = _peek(Path(path)) if head is None else head
    kind = KINDS.get(_inner(Path(path)).suffix.lower()) or _kind_of(head, path)
    if kind == "parquet":
        return Layout(kind, compression)
    if b"\0" in head:
        raise DataError(
            f"{path} should be text but is binary; towpath reads CSV, TSV, JSON lines and Parquet."
        )
    # Not splitlines(): a review may contain the other characters that it takes for ends of lines.
    lines = head.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(head) == PEEK_BYTES and len(lines) > 1:
        lines = lines[:-1]  # cut off in the middle
    lines = [line for line in lines if line.strip()][:PEEK_LINES]
    if not lines:
        raise DataError(f"{path} should hold events but is empty.")
    if kind == "json":
        return Layout(kind, compression, _json_keys(lines, path))
    delimiter = _delimiter(lines[0], path, one_column)
    return Layout(kind, compression, _fields(lines[0], delimiter), delimiter)


def is_data_file(path: Path) -> bool:
    """Whether a file in a folder is one to read: a known ending, not hidden, no manifest of ours."""
    return path.is_file() and is_data_name(path)


def is_data_name(path: Path) -> bool:
    """Whether a file of this name is one to read."""
    return path.name != MANIFEST and path.name[0] not in "._" and _inner(path).suffix.lower() in KINDS


def _inner(path: Path) -> Path:
    """The name without the ending of a compression."""
    return Path(path.stem) if path.suffix in COMPRESSIONS else path


@contextmanager
def uncompressed(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed as its name says."""
    with pa.input_stream(str(path), compression=COMPRESSIONS.get(path.suffix)) as stream:
        yield cast(IO[bytes], stream)  # pyarrow has no types; its streams are binary files


def bad_json_line(path: Path) -> int | None:
    """The number of the first line that is not a JSON object, if there is one."""
    with uncompressed(path) as stream:
        for number, line in enumerate(_lines(stream), start=1):
            if line.strip() and not _is_object(line):
                return number
    return None


def line_with(path: Path, text: str) -> int | None:
    """The number of the first line that is this text, if there is one."""
    wanted = text.encode()
    with uncompressed(path) as stream:
        for number, line in enumerate(_lines(stream), start=1):
            if line.rstrip(b"\r\n") == wanted:
                return number
    return None


def _peek(path: Path) -> bytes:
    try:
        with uncompressed(path) as stream:
            return stream.read(PEEK_BYTES)
    except PermissionError as error:
        raise DataError(
            f"{path} should be readable but is not for you; ask its owner for the right."
        ) from error
    except (OSError, EOFError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read: {_sentence(error)}; copy or make it again.") from error


def _sentence(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error).splitlines()[0].rstrip(".")


def _kind_of(head: bytes, path: File) -> Kind:
    if head[:4] == b"PAR1":
        return "parquet"
    if head[:4] == b"PK\3\4":
        raise DataError(f"{path} is a zip archive; unpack it and give the file inside that holds the events.")
    return "json" if head.lstrip()[:1] == b"{" else "delimited"


def _delimiter(line: str, path: File, one_column: bool) -> str:
    """The delimiter that cuts the first line into most fields; a blank only if nothing else does."""
    best = max(DELIMITERS, key=lambda delimiter: len(_fields(line, delimiter)))
    for delimiter in (best, " "):
        if len(_fields(line, delimiter)) > 1:
            return delimiter
    if one_column:
        return ","
    raise DataError(
        f"The first line of {path} should have at least a user and an item, separated by a comma, tab, "
        f"semicolon, bar, blank or '::', but it is {line[:60]!r}."
    )


def _fields(line: str, delimiter: str) -> tuple[str, ...]:
    if len(delimiter) > 1:
        return tuple(line.split(delimiter))
    return tuple(next(csv.reader([line], delimiter=delimiter)))


def _json_keys(lines: list[str], path: File) -> tuple[str, ...]:
    keys: dict[str, None] = {}
    for number, line in enumerate(lines, start=1):
        if not _is_object(line.encode()):
            raise DataError(
                f"Every line of {path} should be one JSON object, but line {number} is not: {line[:60]!r}."
            )
        keys |= dict.fromkeys(json.loads(line))
    return tuple(keys)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream that pyarrow opened, which cannot iterate by itself."""
    rest = b""
    while block := stream.read(1 << 20):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    if rest:
        yield rest
