"""Data frames of any library as Arrow tables."""

from collections import Counter
from typing import Protocol, TypeGuard

import pyarrow as pa

from towpath.boundary import reading
from towpath.errors import DataError


class DataFrame(Protocol):
    """What pandas, polars, pyarrow and DuckDB have in common: the Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The columns as an Arrow stream."""


def is_frame(data: object) -> TypeGuard[DataFrame]:
    """Whether this is a data frame, not the name of something to read."""
    return hasattr(data, "__arrow_c_stream__")


def to_arrow(frame: DataFrame) -> pa.Table:
    """The frame as an Arrow table, without a copy where the library allows it."""
    _refuse_repeated_names(frame)
    advice = "give its columns different names, and numbers, texts or times as values"
    with reading("The data frame, as an Arrow table,", advice):
        return pa.table(frame)


def _refuse_repeated_names(frame: DataFrame) -> None:
    """Nothing, unless two columns have one name: which of them is meant nobody can say."""
    # Of pyarrow `column_names`: its `columns` are the values.
    names = getattr(frame, "column_names" if hasattr(frame, "column_names") else "columns", ())
    repeated = [name for name, count in Counter(map(str, names)).items() if count > 1]
    if repeated:
        raise DataError(
            f"Each column of a data frame needs its own name, but {repeated[0]!r} is the name of several; "
            "rename or drop the others."
        )
