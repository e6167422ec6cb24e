"""Tables and ids as Parquet files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from towpath.data.vocabulary import Vocabulary
from towpath.errors import ArtifactError


def write_table(table: pa.Table, path: Path) -> None:
    """The file with this table."""
    pq.write_table(table, path, compression="zstd")
    pa.default_memory_pool().release_unused()  # else its buffers stay for as long as the process


def read_table(path: Path) -> pa.Table:
    """The table in this file."""
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ArtifactError(f"{path} cannot be read as Parquet; make it again.") from error


def write_ids(ids: Vocabulary, path: Path) -> None:
    """The file with these ids, in the order of their codes."""
    write_table(pa.table({"id": ids.values}), path)


def read_ids(path: Path) -> Vocabulary:
    """The ids in this file."""
    return Vocabulary(read_table(path).column("id").combine_chunks())
