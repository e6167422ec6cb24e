"""Tables of results as files that other programs read: Parquet or CSV, by the ending of the name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from towpath.errors import ConfigError
from towpath.files import new_file, refuse_unwritable

_WRITERS: dict[str, Callable[[Path, pa.Schema], Any]] = {
    ".parquet": lambda path, schema: pa.parquet.ParquetWriter(path, schema, compression="zstd"),
    ".csv": pa.csv.CSVWriter,
}


def refuse_unknown_ending(out: Path) -> None:
    """Nothing, unless the file cannot be written; to be asked before the work begins."""
    if out.suffix not in _WRITERS:
        raise ConfigError(
            f"--out takes a file that ends in {' or '.join(_WRITERS)}, and {str(out)!r} was given."
        )
    refuse_unwritable(out)


@contextmanager
def table_file(out: Path, schema: pa.Schema) -> Iterator[Any]:  # one of pyarrow's two writers
    """A writer with `write_table` and `write_batch`; the file is there when the block ends well."""
    refuse_unknown_ending(out)
    # The whole path: pyarrow takes a tilde at its beginning for a home.
    with new_file(out) as partial, _WRITERS[out.suffix](partial.absolute(), schema) as writer:
        yield writer
