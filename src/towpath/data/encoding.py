"""From the relation `raw` to Interactions: encode, clean, close up the codes, sort, fill numpy columns."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from towpath.data.cleaning import Cleaner, Cleaning, Step
from towpath.data.engine import Engine, make_room
from towpath.data.interactions import MISSING_TIME, Interactions
from towpath.data.readers import Raw, refuse_missing_ids
from towpath.data.scan import file_errors, trust_statistics
from towpath.data.spark_engine import SparkEngine
from towpath.data.sql import NAMED, Side, Statements, distinct_ids, distinct_names, kept_codes, kept_ids
from towpath.data.vocabulary import Vocabulary
from towpath.errors import DataError
from towpath.memory import refuse_beyond

BATCH_ROWS = 1 << 17
_INCOMPLETE = "SELECT COUNT(*) FROM raw WHERE user_id IS NULL OR item_id IS NULL"
# Columns of `in_order`, their field in Interactions and its type.
FIELDS: dict[str, tuple[str, type[np.generic]]] = {
    "user_code": ("users", np.int32),
    "item_code": ("items", np.int32),
    "event_time": ("times", np.int64),
    "value": ("values", np.float32),
    "propensity": ("propensities", np.float32),
    "exposure": ("exposures", np.bool_),
    "label": ("labels", np.bool_),
    "position": ("positions", np.int32),
    "request": ("requests", np.int64),
    "policy": ("policies", np.int32),
}


def encode(connection: Engine, raw: Raw, cleaning: Cleaning) -> tuple[Interactions, tuple[Step, ...]]:
    """The cleaned events with dense codes in the order of the ids, and what each step of cleaning dropped."""
    steps = encode_events(connection, raw, cleaning)
    columns = _fill(connection, Statements(raw.extras), steps[-1].rows)
    users, items = vocabulary(connection, "user"), vocabulary(connection, "item")
    return Interactions(user_ids=users, item_ids=items, **columns).positives, steps


def encode_events(connection: Engine, raw: Raw, cleaning: Cleaning) -> tuple[Step, ...]:
    """What cleaning dropped; the tables are then those from which `Statements.in_order` selects."""
    statements = Statements(raw.extras)
    make_room(connection, raw.counts.rows)
    with file_errors(raw.source):
        number_rows(connection, "user_ids", distinct_ids("user", raw.user_id), "code", "INTEGER")
        number_rows(connection, "item_ids", distinct_ids("item", raw.item_id), "code", "INTEGER")
        connection.execute(statements.encode())
        cleaner = Cleaner(connection, statements)
        _account_for_lost_rows(connection, raw, cleaner, cleaning)
    connection.execute("DROP VIEW raw; DROP VIEW IF EXISTS source; DROP TABLE IF EXISTS parsed")
    trust_statistics(connection)
    steps = cleaner.clean(cleaning)
    for side in ("user", "item"):
        number_rows(connection, f"kept_{side}s", kept_codes(side), "code", "INTEGER")
    for extra in set(raw.extras) & set(NAMED):
        number_rows(connection, f"{extra}_names", distinct_names(extra), "code")
    return steps


def number_rows(
    connection: Engine, name: str, select: str, number: str = "place", kind: str = "BIGINT"
) -> None:
    """The table of the rows of an ordered query, numbered in that order from 0 in a column of this name.

    Spark numbers the parts of a sorted table side by side; a window function would do it in one task.
    """
    if isinstance(connection, SparkEngine):
        connection.number(name, select, number, kind)
    else:
        connection.execute(f"CREATE TABLE {name}_rows AS {select}")
        numbered = f"SELECT *, CAST(rowid AS {kind}) AS {number} FROM {name}_rows"
        connection.execute(f"CREATE VIEW {name} AS {numbered}")


def _account_for_lost_rows(connection: Engine, raw: Raw, cleaner: Cleaner, cleaning: Cleaning) -> None:
    """Raise when the file has no rows; refuse or report rows without ids, which the joins have left out."""
    total, encoded = raw.counts.rows, cleaner.steps[0].rows
    if total == 0:
        raise DataError(f"{raw.source.label} should hold events but has no rows.")
    if encoded < total and cleaning.missing == "refuse":
        refuse_missing_ids(connection, raw.source)
    incomplete = raw.source.incomplete
    if incomplete is None:
        incomplete = connection.execute(_INCOMPLETE).fetchall()[0][0]
    if encoded + incomplete != total:
        raise DataError(
            f"{raw.source.label} holds {total:,} rows, {incomplete:,} of them without a user or an item, but "
            f"{encoded:,} could be read; it is damaged, so write it again."
        )
    if encoded < total:
        cleaner.drop_missing(total - encoded)


def _fill(connection: Engine, statements: Statements, rows: int) -> dict[str, Any]:
    """The columns of Interactions, filled batch by batch so that nothing is held twice."""
    names = ("user_code", "item_code", *statements.extras)
    kinds = {name: np.dtype(FIELDS[name][1]) for name in names}
    size = rows * sum(kind.itemsize for kind in kinds.values())
    refuse_beyond(size, f"The table of {rows:,} events", "clean more away")
    columns: dict[str, NDArray[Any]] = {name: np.empty(rows, kind) for name, kind in kinds.items()}
    start = 0
    for batch in connection.sql(statements.in_order(MISSING_TIME)).to_arrow_reader(BATCH_ROWS):
        for name, column in columns.items():
            column[start : start + batch.num_rows] = batch.column(name).to_numpy(zero_copy_only=False)
        start += batch.num_rows
    return {FIELDS[name][0]: column for name, column in columns.items()}


def vocabulary(connection: Engine, side: Side) -> Vocabulary:
    """The ids of one side that are left after cleaning."""
    column: pa.ChunkedArray = connection.sql(kept_ids(side)).to_arrow_table().column(0)
    return Vocabulary(column.combine_chunks())
