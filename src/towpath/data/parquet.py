"""Tables and ids as Parquet files."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from towpath.boundary import is_foreign
from towpath.data.vocabulary import Vocabulary
from towpath.errors import ArtifactError
from towpath.mapped import empty_array

ROWS_OF_A_FILE = 1 << 23
_BATCH_ROWS = 1 << 17


def write_table(table: pa.Table, path: Path) -> None:
    """The file with this table."""
    pq.write_table(table, path, compression="zstd")
    pa.default_memory_pool().release_unused()  # else its buffers stay for as long as the process


def read_table(path: Path) -> pa.Table:
    """The table in this file."""
    try:
        with pq.ParquetFile(path) as file:  # not pq.read_table, which loads pandas
            return file.read()
    except Exception as error:
        if not is_foreign(error):
            raise
        raise ArtifactError(f"{path} cannot be read as Parquet; make it again.") from error


def write_parts(batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: Path) -> None:
    """A folder of files that hold these rows one after the other, in the order of their names."""
    folder.mkdir()
    some, more = iter(batches), True
    for number in count():
        if not more:
            break
        rows = 0
        with pq.ParquetWriter(folder / f"part-{number:05}.parquet", schema, compression="zstd") as writer:
            while rows < ROWS_OF_A_FILE and (more := (batch := next(some, None)) is not None):
                writer.write_batch(batch)
                rows += batch.num_rows


def read_columns(path: Path) -> dict[str, NDArray[Any]]:
    """The columns of a file, or of all files of a folder; large ones as maps of temporary files."""
    try:
        files = [pq.ParquetFile(one) for one in (sorted(path.glob("*.parquet")) if path.is_dir() else [path])]
        rows = sum(file.metadata.num_rows for file in files)
        kinds = files[0].schema_arrow
        columns = {field.name: empty_array((rows,), field.type.to_pandas_dtype()) for field in kinds}
        start = 0
        for file in files:
            for batch in file.iter_batches(_BATCH_ROWS):
                for name, column in columns.items():
                    found = batch.column(name).to_numpy(zero_copy_only=False)
                    column[start : start + batch.num_rows] = found
                start += batch.num_rows
    except (OSError, IndexError, pa.ArrowException) as error:
        raise ArtifactError(f"{path} cannot be read as Parquet; make it again.") from error
    return columns


def write_ids(ids: Vocabulary, path: Path) -> None:
    """The file with these ids, in the order of their codes."""
    write_table(pa.table({"id": ids.values}), path)


def read_ids(path: Path) -> Vocabulary:
    """The ids in this file."""
    return Vocabulary(read_table(path).column("id").combine_chunks())
