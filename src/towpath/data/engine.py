"""What runs the SQL: an embedded DuckDB that stays within bounds and leaves nothing behind, or Spark."""

import glob
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from towpath.boundary import reason_of
from towpath.data.sql import FUNCTIONS
from towpath.errors import ConfigError, DataError
from towpath.files import scratch_folder
from towpath.memory import available, current_limit, share_of_room, size_text

# Sorting and joining want about this much per thread before they spill to the temporary folder.
MEGABYTES_PER_THREAD = 150
LEAST_MEGABYTES = 600
MOST_THREADS = 8
# Under a limit of memory: below so much DuckDB cannot even spill, and more than this share of what is left
# would leave no room for the columns that come out.
_FEWEST_MEGABYTES, _SHARE = 100, 0.6
# Not everything spills: of many rows DuckDB must be able to hold about this many bytes each.
_BYTES_PER_ROW = 40


class Answer(Protocol):
    """The rows that a statement gives."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row, if there is one."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""


class Relation(Protocol):
    """The rows of a query, as Arrow."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    def to_arrow_reader(self, batch_size: int, /) -> Iterable[pa.RecordBatch]:
        """The rows in batches, in their order."""

    def to_arrow_table(self) -> pa.Table:
        """All rows."""


class Engine(Protocol):
    """What reading, cleaning and splitting ask for; of DuckDB's connection they use this and no more."""

    def execute(self, statement: str, /) -> Answer:
        """What one statement gives."""

    def sql(self, select: str, /) -> Relation:
        """The rows of a query."""

    def register(self, name: str, table: pa.Table, /) -> Any:  # what comes back is not used
        """Make a table in memory known under this name."""


@contextmanager
def open_engine(name: str) -> Iterator[Engine]:
    """The engine of this name: duckdb, spark (as configured, else on this machine) or spark://host:port."""
    if name == "duckdb":
        with engine() as connection:
            yield connection
    elif is_spark(name):
        from towpath.data.spark_engine import SparkEngine
        from towpath.data.spark_session import spark_session

        yield SparkEngine(spark_session(name))
    else:
        raise ConfigError(
            f"An engine is duckdb, spark or the address of a Spark master such as spark://host:7077, and "
            f"{name!r} was given."
        )


def is_spark(name: str) -> bool:
    """Whether an engine of this name is Spark."""
    return name == "spark" or name.startswith("spark://")


@contextmanager
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with bounded memory whose spill folder is gone afterwards, also after an error."""
    threads, megabytes = _bounds()
    with scratch_folder() as spill:
        connection = duckdb.connect(":memory:")
        try:
            connection.execute("SET enable_progress_bar = false")
            connection.execute(f"SET threads = {threads}")
            connection.execute(f"SET memory_limit = '{megabytes}MB'")
            connection.execute(f"SET temp_directory = {quote_literal(str(spill))}")
            # Text without an offset must not mean something else on a machine in another time zone.
            connection.execute("SET TimeZone = 'UTC'")
            # Otherwise UUID ids would come back as text.
            connection.execute("SET arrow_lossless_conversion = true")
            # The row of the file decides ties in time, so scans must number rows as the file has them.
            connection.execute("SET preserve_insertion_order = true")
            for function in FUNCTIONS:
                connection.execute(function.in_duckdb())
            yield connection
        except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
            raise _no_room(error, megabytes) from error
        finally:
            connection.close()


def _no_room(error: duckdb.Error, megabytes: int) -> DataError:
    """The error for work that found no room, in memory or on the disk that it spills to."""
    why = reason_of(error)
    limit = current_limit()
    if limit is not None and isinstance(error, duckdb.OutOfMemoryException):
        return DataError(
            f"Reading or splitting needs more than the {megabytes:,} MB that a limit of memory of "
            f"{size_text(limit)} leaves it ({why}); give more memory."
        )
    return DataError(
        f"Reading or splitting needs more room than memory and {tempfile.gettempdir()} have ({why}); set "
        "TMPDIR to a folder on a larger disk."
    )


def make_room(connection: Engine, rows: int) -> None:
    """Let DuckDB hold as much as so many rows need; under a limit of memory it keeps to its share of that."""
    megabytes = min(rows * _BYTES_PER_ROW, round(_SHARE * available())) // 10**6
    if isinstance(connection, duckdb.DuckDBPyConnection) and current_limit() is None:
        connection.execute(f"SET memory_limit = '{max(megabytes, _bounds()[1])}MB'")


def _bounds() -> tuple[int, int]:
    """Threads and megabytes that DuckDB may use."""
    threads = min(os.cpu_count() or 1, MOST_THREADS)
    usual = max(LEAST_MEGABYTES, threads * MEGABYTES_PER_THREAD)
    allowed = share_of_room(
        usual * 10**6, _FEWEST_MEGABYTES * 10**6, "Reading or splitting events", share=_SHARE
    )
    megabytes = allowed // 10**6
    if megabytes < usual:
        threads = max(1, min(threads, megabytes // MEGABYTES_PER_THREAD))
    return threads, megabytes


def quote_literal(value: str) -> str:
    """An SQL text literal.

    >>> print(quote_literal("it's"))
    'it''s'
    """
    return "'" + value.replace("'", "''") + "'"


def quote_path(path: str | Path) -> str:
    """An SQL text literal that stands for this one file.

    DuckDB takes a path with brackets, stars or question marks for a pattern, which other files may match, and
    a tilde or a scheme at its beginning for another place.

    >>> print(quote_path("/data/clicks[1].csv"))
    '/data/clicks[[]1].csv'
    """
    return quote_literal(glob.escape(str(Path(path).absolute())))


def quote_identifier(value: str) -> str:
    """An SQL column name, quoted."""
    return '"' + value.replace('"', '""') + '"'
