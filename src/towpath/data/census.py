"""How many rows a file holds, counted without the engine that reads it.

Text is counted by its line ends and quotes, Parquet by decoding its ids with Arrow. The engine must find as
many: a file that says something else about itself than it holds, such as a Parquet file with wrong
statistics, is refused instead of being read in part.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from towpath.data.layout import COMPRESSIONS, Layout, uncompressed
from towpath.data.unpacking import refuse_expansion
from towpath.errors import DataError

BLOCK_BYTES = 1 << 22
# One record of text may be this long.
LONGEST_RECORD = 1 << 26
PARQUET_BATCH = 1 << 16


@dataclass(frozen=True)
class TextCensus:
    """The records of a text file, a header among them, and whether only a copy of it can be read.

    The engine wants line ends of one kind, JSON with line feeds, and no blank lines before a header.
    """

    records: int
    needs_copy: bool


@dataclass(frozen=True)
class ParquetCensus:
    """The rows of Parquet files, and how many of them lack one of the columns that were asked for."""

    rows: int
    incomplete: int


def count_text(path: Path, layout: Layout) -> TextCensus:
    """The census of a text file; blank lines are no records."""
    records, ends, blank = 0, set[str](), False
    for _, masked in _whole_records(path, layout):
        if b"\r" in masked:
            ends |= _ends(masked)
            masked = masked.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        elif b"\n" in masked:
            ends.add("LF")
        blank = blank or (not records and masked.startswith(b"\n"))
        records += _lines(masked, json=layout.kind == "json")
    odd = len(ends) > 1 or blank or (layout.kind == "json" and "CR" in ends)
    return TextCensus(records, odd)


def write_plain_ends(path: Path, layout: Layout, target: Path) -> None:
    """The same text with every line end outside of quotes as a line feed, the first not blank."""
    with target.open("wb") as out:
        for whole, masked in _whole_records(path, layout):
            text, shown = (np.frombuffer(part, np.uint8) for part in (whole, masked))
            returns = shown == ord("\r")
            pairs = returns[:-1] & (shown[1:] == ord("\n"))
            plain = np.where(returns, np.uint8(ord("\n")), text)[~np.append(pairs, False)].tobytes()
            out.write(plain if out.tell() else plain.lstrip(b"\n"))


def count_parquet(files: Sequence[Path], columns: Sequence[str]) -> ParquetCensus:
    """The census of Parquet files, with `columns` decoded from their pages: no statistics are trusted."""
    rows = incomplete = 0
    for path in files:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            known = [name for name in dict.fromkeys(columns) if names.count(name) == 1]
            for batch in file.iter_batches(PARQUET_BATCH, columns=known or names[:1]):
                rows += batch.num_rows
                # A column whose name has a dot in it cannot be asked for alone.
                found = [batch.column(name) for name in known if name in batch.schema.names]
                missing = [column.is_null() for column in found if column.null_count]
                if missing:
                    either = missing[0] if len(missing) == 1 else pc.or_(missing[0], missing[1])
                    incomplete += int(pc.sum(either).as_py())
    return ParquetCensus(rows, incomplete)


def _whole_records(path: Path, layout: Layout) -> Iterator[tuple[bytes, bytes]]:
    """The text in pieces that end with a record, each also with everything quoted masked."""
    quoted = None if layout.kind == "json" else _quoted_fields(layout.delimiter)
    rest = b""
    with uncompressed(path) as stream:
        for place, block in enumerate(_blocks(stream, path)):
            rest += block if place else block.removeprefix(b"\xef\xbb\xbf")
            masked = _masked(rest, quoted)
            # A carriage return at the very end may be the first half of a line end.
            cut = max(masked.rfind(b"\n"), masked.rfind(b"\r", 0, len(rest) - 1)) + 1
            if cut:
                yield rest[:cut], masked[:cut]
            elif len(rest) > LONGEST_RECORD:
                raise DataError(
                    f"{path} has a record of more than {LONGEST_RECORD >> 20} MB; a quote may not be closed."
                )
            rest = rest[cut:]
    if rest:
        yield rest, _masked(rest, quoted)


def _blocks(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    """The bytes of a stream; raises if they are far more than the file has."""
    seen = 0
    while block := stream.read(BLOCK_BYTES):
        seen += len(block)
        if path.suffix in COMPRESSIONS:
            refuse_expansion(path, seen)
        yield block


def _quoted_fields(delimiter: str) -> re.Pattern[bytes]:
    """Quoted fields: a quote counts only at the start of a field, and a doubled one is part of it."""
    before = re.escape(delimiter.encode())
    return re.compile(rb'(?:(?<=%s)|(?<=[\r\n])|(?<![\s\S]))"[^"]*(?:""[^"]*)*(?:"|\Z)' % before)


def _masked(text: bytes, quoted: re.Pattern[bytes] | None) -> bytes:
    """The text, as long as before, with a letter for each byte of a quoted field."""
    if quoted is None or b'"' not in text:
        return text
    return quoted.sub(lambda field: b"q" * len(field[0]), text)


def _ends(text: bytes) -> set[str]:
    """The kinds of line ends in a text that has carriage returns."""
    pairs = text.count(b"\r\n")
    counts = {"CRLF": pairs, "CR": text.count(b"\r") - pairs, "LF": text.count(b"\n") - pairs}
    return {kind for kind, count in counts.items() if count}


def _lines(text: bytes, *, json: bool) -> int:
    """Lines that hold something; in JSON blanks are nothing."""
    if json:
        return (
            len(re.findall(rb"^[^\S\n]*\S", text, re.MULTILINE)) if b"\n" in text else int(bool(text.strip()))
        )
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    if text.startswith(b"\n") or b"\n\n" in text:
        return len(re.findall(rb"[^\n]+", text))
    return lines if text else 0
