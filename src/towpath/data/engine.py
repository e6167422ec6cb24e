"""An embedded DuckDB that stays within bounds and leaves nothing behind."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from towpath.errors import DataError

# Sorting and joining want about this much per thread before they spill to the temporary folder.
MEGABYTES_PER_THREAD = 150
LEAST_MEGABYTES = 600
MOST_THREADS = 8


@contextmanager
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with bounded memory whose spill folder is gone afterwards, also after an error."""
    threads = min(os.cpu_count() or 1, MOST_THREADS)
    with tempfile.TemporaryDirectory(prefix="towpath-", ignore_cleanup_errors=True) as spill:
        connection = duckdb.connect(":memory:")
        try:
            connection.execute("SET enable_progress_bar = false")
            connection.execute(f"SET threads = {threads}")
            connection.execute(
                f"SET memory_limit = '{max(LEAST_MEGABYTES, threads * MEGABYTES_PER_THREAD)}MB'"
            )
            connection.execute(f"SET temp_directory = {quote_literal(spill)}")
            # Text without an offset must not mean something else on a machine in another time zone.
            connection.execute("SET TimeZone = 'UTC'")
            # Otherwise UUID ids would come back as text.
            connection.execute("SET arrow_lossless_conversion = true")
            # The row of the file decides ties in time, so scans must number rows as the file has them.
            connection.execute("SET preserve_insertion_order = true")
            yield connection
        except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
            raise DataError(
                f"Reading or splitting needs more room than memory and {tempfile.gettempdir()} have "
                f"({str(error).splitlines()[0].rstrip('.')}); set TMPDIR to a folder on a larger disk."
            ) from error
        finally:
            connection.close()


def quote_literal(value: str) -> str:
    """An SQL text literal.

    >>> print(quote_literal("it's"))
    'it''s'
    """
    return "'" + value.replace("'", "''") + "'"


def quote_identifier(value: str) -> str:
    """An SQL column name, quoted."""
    return '"' + value.replace('"', '""') + '"'
