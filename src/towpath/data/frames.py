"""Data frames of any library as Arrow tables."""

from typing import Protocol, TypeGuard

import pyarrow as pa

from towpath.boundary import reading


class DataFrame(Protocol):
    """What pandas, polars, pyarrow and DuckDB have in common: the Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The columns as an Arrow stream."""


def is_frame(data: object) -> TypeGuard[DataFrame]:
    """Whether this is a data frame, not the name of something to read."""
    return hasattr(data, "__arrow_c_stream__")


def to_arrow(frame: DataFrame) -> pa.Table:
    """The frame as an Arrow table, without a copy where the library allows it."""
    advice = "give its columns different names, and numbers, texts or times as values"
    with reading("The data frame, as an Arrow table,", advice):
        return pa.table(frame)
