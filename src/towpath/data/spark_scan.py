"""Files of one layout as Spark's relation `source`, with the row of the file that every row came from.

Spark reads pieces of files in any order. A piece is a file and the byte where it begins, and within a piece
rows come in order, so the rows of all pieces before it give the number of its first row.
"""

import re
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from towpath.data.columns import REQUIRED
from towpath.data.layout import PEEK_LINES, File, Layout, bad_json_line, is_data_name, layout_of, line_with
from towpath.data.spark_engine import SparkEngine, spark_errors, spark_reason
from towpath.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from towpath.data.scan import Source

_BAD_RECORD = "Malformed CSV record: "
PIECE = ("towpath_file", "towpath_piece", "towpath_row")


def open_files(engine: SparkEngine, source: "Source") -> tuple[str, ...]:
    """The relation `source` over these files; what was noticed on the way comes back as notes."""
    notes: tuple[str, ...] = ()
    with spark_errors(lambda reason: _unreadable(source, reason)):
        if source.layout.kind == "parquet":
            frame = _parquet(engine, source)
        elif source.layout.kind == "json":
            frame = engine.computed(_json(engine, source), lambda reason: _unreadable(source, reason))
        else:
            frame, notes = _delimited(engine, source)
        _number_rows(engine, frame, source)
    return notes


def parquet_names(engine: SparkEngine, files: Sequence[File]) -> tuple[str, ...]:
    """The names of the columns of Parquet files."""
    from pyspark.errors import AnalysisException

    with spark_errors(lambda reason: f"{files[0]} cannot be read: {reason}."):
        try:
            return tuple(engine.session.read.parquet(*map(_address, files)).columns)
        except AnalysisException as error:  # no file of them has any columns
            raise DataError(f"{files[0]} cannot be read: {spark_reason(error)}.") from error


def _parquet(engine: SparkEngine, source: "Source") -> "DataFrame":
    from pyspark.sql.functions import col, lit

    frame = engine.session.read.parquet(*map(_address, source.files))
    roles = [col(_quoted(source.column(role))).alias(role) for role in source.indices]
    place = (col("_metadata.file_path"), lit(0), col("_metadata.row_index"))
    return frame.select(*roles, *(c.alias(name) for c, name in zip(place, PIECE, strict=True)))


def _delimited(engine: SparkEngine, source: "Source") -> tuple["DataFrame", tuple[str, ...]]:
    """The rows of text files, and a note if they are not UTF-8."""
    lines = engine.session.read.text(list(map(_address, source.files)))
    odd_quotes = "SUM((LENGTH(value) - LENGTH(REPLACE(value, '\"', ''))) % 2)"
    odd, invalid = lines.selectExpr(odd_quotes, "SUM(CAST(NOT is_valid_utf8(value) AS INT))").collect()[0]
    options = {
        "sep": source.layout.delimiter,
        "header": str(source.header).lower(),
        "quote": '"',
        "escape": '"',
        "mode": "FAILFAST",
        # A quoted text that goes on in the next line; such a file cannot be cut into pieces.
        "multiLine": str(bool(odd)).lower(),
        "encoding": "ISO-8859-1" if invalid else "UTF-8",
    }
    schema = ", ".join(f"c{index} STRING" for index in range(len(source.names)))
    frame = engine.session.read.options(**options).schema(schema).csv(list(map(_address, source.files)))
    roles = [f"c{index} AS `{role}`" for role, index in source.indices.items()]
    notes = ("the text is not UTF-8; read as Latin-1",) if invalid else ()
    rows = frame.selectExpr(*roles, *_text_piece())
    return engine.computed(rows, lambda reason: _unreadable(source, reason)), notes


def _json(engine: SparkEngine, source: "Source") -> "DataFrame":
    """Every value as text; an id that is text in the file has a quote in front."""
    from pyspark.sql.functions import col, concat, lit, schema_of_variant, variant_get, when

    lines = engine.session.read.text(list(map(_address, source.files))).selectExpr(
        "value",
        "try_parse_json(value) AS parsed",
        "from_json(value, 'map<string,string>') AS keys",
        *_text_piece(),
    )
    lines = lines.where("TRIM(value) <> ''")
    if lines.where("keys IS NULL OR NOT is_valid_utf8(value)").limit(1).count():
        raise DataError(_bad_line(source))
    roles = []
    for role, index in source.indices.items():
        key = source.names[index]
        value = col("keys").getItem(key)
        if source.whole or role in REQUIRED:
            found = variant_get(col("parsed"), f"$['{key}']", "variant")
            is_text = schema_of_variant(found) == "STRING"
            marked = when(is_text, concat(lit('"'), value)).otherwise(value)
            roles.append(marked.alias(role, metadata={"kind": "JSON"}))
        else:
            roles.append(value.alias(role))
    return lines.select(*roles, *PIECE)


def _unreadable(source: "Source", reason: str) -> str:
    """The sentence for files that Spark cannot read; with the line of a bad record if the file is at hand."""
    record = reason.removeprefix(_BAD_RECORD)
    if record != reason:
        for file in source.files:
            if isinstance(file, Path) and (number := line_with(file, record)):
                wrong = f"{len(source.names)} columns were expected"
                return (
                    f"Line {number:,} of {file} does not parse, {wrong}: {record[:60]!r}; mend or remove it."
                )
    return f"{source.label} cannot be read: {reason}."


def _bad_line(source: "Source") -> str:
    for file in source.files:
        number = bad_json_line(file) if isinstance(file, Path) else None
        if number:
            return f"Line {number:,} of {file} should be one JSON object; mend or remove that line."
    return f"Every line of {source.label} should be one JSON object, but some are not; mend or remove them."


def _text_piece() -> tuple[str, ...]:
    columns = ("_metadata.file_path", "_metadata.file_block_start", "monotonically_increasing_id()")
    return tuple(f"{column} AS {name}" for column, name in zip(columns, PIECE, strict=True))


def _number_rows(engine: SparkEngine, frame: "DataFrame", source: "Source") -> None:
    """The view `source`: rows numbered over all files, in the order of the files."""
    from pyspark.sql.functions import broadcast, col, count, min  # noqa: A004  # Spark's

    file, piece, row = PIECE
    found = frame.groupBy(file, piece).agg(min(row).alias("first"), count("*").alias("rows")).collect()
    places = {_plain(one): place for place, one in enumerate(source.files)}
    pieces = sorted(found, key=lambda one: (places[_plain(one[file])], one[piece]))
    starts = list(accumulate((one["rows"] for one in pieces), initial=0))
    rows_of = dict.fromkeys(places, 0)
    for one in pieces:
        rows_of[_plain(one[file])] += one["rows"]
    engine.starts[source.label] = list(accumulate(rows_of.values(), initial=0))[:-1]
    table = pa.table(
        {
            file: pa.array([one[file] for one in pieces], pa.string()),
            piece: pa.array([one[piece] for one in pieces], pa.int64()),
            "shift": pa.array(
                [start - one["first"] for start, one in zip(starts, pieces, strict=False)], pa.int64()
            ),
        }
    )
    numbered = frame.join(broadcast(engine.session.createDataFrame(table)), [file, piece])
    roles = [col(_quoted(role)) for role in source.indices]
    engine.view("source", numbered.select(*roles, (col(row) + col("shift")).alias("file_row")))


def _address(file: File) -> str:
    """What Spark opens; a character of a local name must not be taken for a pattern."""
    if isinstance(file, str):
        return file
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", file.absolute().as_posix())


def _plain(file: File) -> str:
    """One spelling for a file of ours and the address that Spark calls it by."""
    if isinstance(file, Path):
        return file.absolute().as_posix()
    return unquote(re.sub(r"^file:/+", "/", file))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def list_files(engine: SparkEngine, address: str) -> list[str]:
    """The data files that an address, a pattern of addresses or a folder there stands for, by name."""
    jvm: Any = engine.session.sparkContext._jvm  # classes of Java
    path = jvm.org.apache.hadoop.fs.Path(address)
    system = path.getFileSystem(engine.session.sparkContext._jsc.hadoopConfiguration())
    found: list[str] = []
    with spark_errors(lambda reason: f"{address} cannot be listed: {reason}."):
        for status in system.globStatus(path) or ():
            if not status.isDirectory():
                found.append(status.getPath().toString())
                continue
            inside = system.listFiles(status.getPath(), True)
            while inside.hasNext():
                name = inside.next().getPath().toString()
                if is_data_name(Path(name)):
                    found.append(name)
    if not found:
        raise DataError(f"There is no data file at {address}; check the address.")
    return sorted(found)


def layout_at(engine: SparkEngine, address: str, *, one_column: bool = False) -> Layout:
    """The layout of the file at an address, from its name and first lines."""
    if is_data_name(Path(address)) and ".parquet" in address:
        return Layout("parquet", None)
    with spark_errors(lambda reason: f"{address} cannot be read: {reason}."):
        lines = engine.session.read.text(address).limit(PEEK_LINES).collect()
    return layout_of(address, one_column=one_column, head="\n".join(row[0] for row in lines).encode())
