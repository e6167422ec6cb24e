"""Files of one layout as one DuckDB relation `source`: a column for each role, and the row of the file."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from towpath.boundary import reading, reason_of
from towpath.data.census import TextCensus, count_parquet, count_text, write_plain_ends
from towpath.data.columns import (
    REQUIRED,
    ColumnMapping,
    Columns,
    has_usual_name,
    looks_like_header,
    map_columns,
    map_positions,
)
from towpath.data.engine import Engine, quote_identifier, quote_literal, quote_path
from towpath.data.layout import File, Layout, bad_json_line, layout_of
from towpath.data.spark_engine import SparkEngine
from towpath.data.spark_scan import layout_at, open_files, parquet_names
from towpath.errors import DataError

# What DuckDB says of bad files in sentences that are worth taking apart; the boundary has the rest.
FILE_ERRORS = (duckdb.InvalidInputException, duckdb.IOException, duckdb.ConversionException)
# What the statistics of a Parquet file could mislead: they are never trusted, since they may be wrong.
_BY_STATISTICS = ("statistics_propagation", "filter_pushdown", "join_filter_pushdown", "row_group_pruner")
# Columns that DuckDB adds to a Parquet file, unless the file has its own of that name.
_ADDED = {"file_row_number", "file_index"}


@dataclass(frozen=True)
class Source:
    """The files, which column plays which role, and what was guessed."""

    files: tuple[File, ...]
    layout: Layout
    header: bool
    indices: dict[str, int]
    names: tuple[str, ...]
    notes: tuple[str, ...]
    whole: bool = False  # every column is read, under its own name
    # Copies to read in place of files whose line ends are of several kinds.
    copies: Mapping[File, Path] = field(default_factory=dict)
    incomplete: int | None = None  # rows without a user or an item, where Arrow has counted them

    @property
    def label(self) -> str:
        """The file, or the first of several."""
        if not self.files:
            return "the data frame"
        more = f" (and {len(self.files) - 1:,} more)" if len(self.files) > 1 else ""
        return f"{self.files[0]}{more}"

    def column(self, role: str) -> str:
        """What the file itself calls the column of this role."""
        return self.names[self.indices[role]] if self.header else str(self.indices[role] + 1)


def open_source(connection: Engine, files: Sequence[File], columns: Columns) -> Source:
    """The relation `source` over these files, with columns named user, item, time ... and file_row."""
    layout = _common_layout(connection, files)
    names = _parquet_names(connection, files) if layout.kind == "parquet" else layout.first_line
    header = layout.kind != "delimited" or _has_header(names, columns)
    if header and layout.kind == "delimited":
        _refuse_double_names(names, files[0])
    mapping = _map(columns, names, header, str(files[0]))
    source = Source(tuple(files), layout, header, mapping.indices, names, mapping.notes)
    with file_errors(source):
        return _create(connection, source)


def column_names(connection: Engine, files: Sequence[File]) -> tuple[str, ...]:
    """What the columns of these files are called; by position where there is no header line."""
    layout = _common_layout(connection, files)
    if layout.kind == "parquet":
        return _parquet_names(connection, files)
    if layout.kind == "delimited" and not looks_like_header(layout.first_line):
        return tuple(str(index + 1) for index in range(len(layout.first_line)))
    return layout.first_line


def open_frame(connection: Engine, frame: pa.Table, columns: Columns) -> Source:
    """The relation `source` over a data frame, with columns named user, item, time ... and file_row."""
    names = tuple(frame.column_names)
    _refuse_double_names(names, "the data frame")
    mapping = map_columns(columns, names, "the data frame")
    source = Source((), Layout("frame", None), True, mapping.indices, names, mapping.notes)
    chosen = {role: frame.column(index) for role, index in mapping.indices.items()}
    connection.register("source", pa.table({**chosen, "file_row": np.arange(len(frame))}))
    return source


def open_table(
    connection: Engine,
    files: Sequence[File],
    names: tuple[str, ...] = (),
    delimiter: str | None = None,
) -> Source:
    """The relation `source` over all named columns of these files, as they are named there, and file_row.

    `names` are those of a file that has no header line; `delimiter` is what separates its columns.
    """
    layout = _common_layout(connection, files, one_column=True)
    found = _parquet_names(connection, files) if layout.kind == "parquet" else layout.first_line
    header = not names
    if header and layout.kind == "delimited":
        _refuse_double_names(found, files[0])
    if delimiter is not None:
        layout = replace(layout, delimiter=delimiter)
    # A column without a name, such as the index that pandas writes, cannot be asked for.
    indices = {column: index for index, column in enumerate(names or found) if column}
    source = Source(tuple(files), layout, header, indices, names or found, (), whole=True)
    with file_errors(source):
        return _create(connection, source)


@contextmanager
def file_errors(source: Source) -> Iterator[None]:
    """What DuckDB says about a bad file, as one sentence with the file and the line."""
    with reading(source.label):
        try:
            yield
        except FILE_ERRORS as error:
            if "No space left" in str(error):  # the spill folder is full; the file may be in order
                raise
            raise DataError(_sentence(error, source)) from error


def location_of(connection: Engine, source: Source, file_row: int) -> str:
    """Where a row is, for an error: line (row, for Parquet) and, of several files, which."""
    if not source.files:
        return f"row {file_row:,} of {source.label}, counted from 0"
    starts = _starts(connection, source)
    which = max(index for index, start in enumerate(starts) if start <= file_row)
    first = 2 if source.header and source.layout.kind == "delimited" else 1
    word = "row" if source.layout.kind == "parquet" else "line"
    return f"{word} {file_row - starts[which] + first:,} of {source.files[which]}"


def _starts(connection: Engine, source: Source) -> list[int]:
    """How many rows come before each file."""
    if isinstance(connection, SparkEngine):
        return connection.starts[source.label]
    scans = [f"SELECT COUNT(*) FROM {_scan(replace(source, files=(file,)))}" for file in source.files[:-1]]
    counts = [connection.execute(scan).fetchall()[0][0] for scan in scans]
    return [0, *accumulate(counts)]


def _common_layout(connection: Engine, files: Sequence[File], *, one_column: bool = False) -> Layout:
    """The layout that all files share."""
    layouts = {
        file: layout_at(connection, file, one_column=one_column)
        if isinstance(file, str) and isinstance(connection, SparkEngine)
        else layout_of(file, one_column=one_column)
        for file in files
    }
    first = layouts[files[0]]
    for file, layout in layouts.items():
        if layout.kind != first.kind or layout.delimiter != first.delimiter:
            raise DataError(
                f"All files should have one format, but {files[0]} and {file} differ; name one of them."
            )
        if first.kind == "json":
            continue
        same = layout.first_line == first.first_line or not looks_like_header(first.first_line)
        if len(layout.first_line) != len(first.first_line) or not same:
            raise DataError(
                f"All files should have the same columns, but {files[0]} has {', '.join(first.first_line)} "
                f"and {file} has {', '.join(layout.first_line)}; name one of them."
            )
    keys = dict.fromkeys(key for layout in layouts.values() for key in layout.first_line)
    return replace(first, first_line=tuple(keys)) if first.kind == "json" else first


def _has_header(line: Sequence[str], columns: Columns) -> bool:
    told = [column for column in vars(columns).values() if column is not None]
    by_position = any(column.isdecimal() and column not in line for column in told)
    return looks_like_header(line) and not (by_position and not has_usual_name(line))


def _refuse_double_names(names: Sequence[str], label: File) -> None:
    double, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise DataError(
            f"Each column needs a name of its own, but {label} has {double!r} {count} times; "
            "rename one of them."
        )


def _map(columns: Columns, names: tuple[str, ...], header: bool, label: str) -> ColumnMapping:
    return map_columns(columns, names, label) if header else map_positions(columns, names, label)


def _parquet_names(connection: Engine, files: Sequence[File]) -> tuple[str, ...]:
    if isinstance(connection, SparkEngine):
        return parquet_names(connection, files)
    source = Source(tuple(files), Layout("parquet", None), True, {}, (), ())
    with file_errors(source):
        return tuple(connection.sql(f"SELECT * FROM read_parquet({_list(source)})").columns)


def _create(connection: Engine, source: Source) -> Source:
    """The relation `source`, once as many rows are found as were counted without the engine."""
    if isinstance(connection, SparkEngine):
        source = replace(source, notes=(*source.notes, *open_files(connection, source)))
        if any(isinstance(file, str) for file in source.files):
            return source  # files at an address cannot be counted from here
    elif source.layout.kind == "parquet":
        connection.execute(f"SET disabled_optimizers = '{','.join(_BY_STATISTICS)}'")
        _create_from_parquet(connection, source)
    if source.layout.kind == "parquet":
        return _counted_by_arrow(connection, source)
    counts = {file: count_text(Path(file), source.layout) for file in source.files}
    if not isinstance(connection, SparkEngine):
        source = replace(source, copies=_copies(connection, source, counts))
        source = _created_from_text(connection, source)
    headers = len(source.files) if source.header and source.layout.kind == "delimited" else 0
    _refuse_another_count(connection, source, sum(count.records for count in counts.values()) - headers)
    return source


def _counted_by_arrow(connection: Engine, source: Source) -> Source:
    """The source with its rows without ids, as Arrow counts them."""
    files = [file for file in source.files if isinstance(file, Path)]
    counted = count_parquet(files, () if source.whole else [source.column(role) for role in REQUIRED])
    _refuse_another_count(connection, source, counted.rows)
    return replace(source, incomplete=None if source.whole else counted.incomplete)


def trust_statistics(connection: Engine) -> None:
    """Let the engine plan by statistics again, once only its own tables are read."""
    if not isinstance(connection, SparkEngine):
        connection.execute("RESET disabled_optimizers")


def _copies(connection: Engine, source: Source, counts: Mapping[File, TextCensus]) -> dict[File, Path]:
    """Copies with plain line ends of the files that DuckDB does not read as they are."""
    found = connection.execute("SELECT current_setting('temp_directory')").fetchall()
    scratch = Path(found[0][0])  # gone when the engine is
    copies = {}
    for number, (file, count) in enumerate(counts.items()):
        if count.needs_copy:
            copies[file] = scratch / f"lines-{number}"
            write_plain_ends(Path(file), source.layout, copies[file])
    return copies


def _refuse_another_count(connection: Engine, source: Source, rows: int) -> None:
    """Nothing, unless the engine finds another number of rows than were counted without it."""
    found = connection.execute("SELECT COUNT(*) FROM source").fetchall()[0][0]
    if found != rows:
        raise DataError(
            f"{source.label} holds {rows:,} rows, but {found:,} of them could be read; it is damaged, or its "
            "quotes or line ends do not match. Write it again."
        )


def _create_from_parquet(connection: Engine, source: Source) -> None:
    """A view of the files, or a table where their own columns hide those that number the rows."""
    columns = ", ".join(
        f"{quote_identifier(source.column(role))} AS {quote_identifier(role)}" for role in source.indices
    )
    if _ADDED & {name.lower() for name in source.names}:
        connection.execute(f"CREATE TABLE parsed AS SELECT {columns} FROM read_parquet({_list(source)})")
        connection.execute("CREATE VIEW source AS SELECT *, rowid AS file_row FROM parsed")
        return
    # DuckDB counts lists from one.
    starts = f"{_starts(connection, source)}[CAST(file_index AS BIGINT) + 1] + "
    rows = f"{starts if len(source.files) > 1 else ''}file_row_number AS file_row"
    connection.execute(f"CREATE VIEW source AS SELECT {columns}, {rows} FROM {_scan(source)}")


def _created_from_text(connection: Engine, source: Source) -> Source:
    """The source, once its text has been parsed as UTF-8 or else as Latin-1."""
    try:
        _create_from_text(connection, source)
    except duckdb.InvalidInputException as error:
        if source.layout.kind != "delimited" or "utf-8" not in str(error):
            raise
        _create_from_text(connection, source, ", encoding = 'latin-1'")
        return replace(source, notes=(*source.notes, "the text is not UTF-8; read as Latin-1"))
    return source


def _create_from_text(connection: Engine, source: Source, options: str = "") -> None:
    """Text is parsed once into a table; the rows of a table are numbered in the order of the file."""
    columns = ", ".join(f"c{index} AS {quote_identifier(role)}" for role, index in source.indices.items())
    connection.execute(f"CREATE TABLE parsed AS SELECT {columns} FROM {_scan(source, options)}")
    connection.execute("CREATE VIEW source AS SELECT *, rowid AS file_row FROM parsed")


def _scan(source: Source, options: str = "") -> str:
    """The DuckDB table function that reads the files."""
    files, layout = _list(source), source.layout
    if layout.kind == "parquet":
        return f"read_parquet({files}, file_row_number = true)"
    if layout.kind == "json":
        roles = source.indices if source.whole else REQUIRED
        ids = {source.indices[role] for role in roles}
        # Ids are taken as JSON, which still tells 7 from "7" and never makes a date of a text.
        kinds = {
            quote_literal(key): "'JSON'" if p in ids else "'VARCHAR'" for p, key in enumerate(source.names)
        }
        columns = ", ".join(f"{key}: {kinds[key]}" for key in kinds if _is_mapped(source, key))
        renamed = ", ".join(
            f"{quote_identifier(source.names[index])} AS c{index}" for index in source.indices.values()
        )
        read = f"read_json({files}, format = 'newline_delimited', records = true, columns = {{{columns}}})"
        return f"(SELECT {renamed} FROM {read})"
    columns = ", ".join(f"'c{index}': 'VARCHAR'" for index in range(len(source.names)))
    return (
        f"read_csv({files}, auto_detect = false, delim = {quote_literal(layout.delimiter)}, quote = '\"', "
        f"escape = '\"', header = {str(source.header).lower()}, columns = {{{columns}}}{options})"
    )


def _is_mapped(source: Source, key: str) -> bool:
    return key in {quote_literal(source.names[index]) for index in source.indices.values()}


def _list(source: Source) -> str:
    return "[" + ", ".join(quote_path(source.copies.get(file, file)) for file in source.files) + "]"


def _sentence(error: duckdb.Error, source: Source) -> str:
    """One sentence for what DuckDB takes many lines to say."""
    message = str(error)
    names = {file: str(source.copies.get(file, file)) for file in source.files}
    file = next((str(file) for file, name in names.items() if name in message), source.label)
    if line := re.search(r"CSV Error on Line: (\d+)", message):
        counts = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
        wrong = (
            f"{counts[1]} columns were expected and {counts[2]} found"
            if counts
            else "its quotes do not match"
        )
        content = re.search(r"Original Line: (.*)", message)
        shown = f": {content[1][:60]!r}" if content else ""
        return f"Line {int(line[1]):,} of {file} does not parse, {wrong}{shown}; mend or remove that line."
    if source.layout.kind == "json":
        number = next((bad_json_line(Path(f)) for f in source.files if str(f) == file), None)
        if number:
            return f"Line {number:,} of {file} should be one JSON object; mend or remove that line."
    reason = re.sub(r"^[A-Z]\w+( \w+)* Error: ", "", reason_of(error))
    return f"{file} cannot be read; it is truncated, damaged or not what its name says ({reason})."
