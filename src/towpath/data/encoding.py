"""From the relation `raw` to Interactions: encode, clean, close up the codes, sort, fill numpy columns."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from towpath.data.cleaning import Cleaner, Cleaning, SqlEvents, Step
from towpath.data.engine import Engine, make_room
from towpath.data.event_arrays import RATED, SORT_BYTES, EventArrays
from towpath.data.interactions import MISSING_TIME, Interactions
from towpath.data.readers import Raw, refuse_missing_ids
from towpath.data.scan import file_errors, trust_statistics
from towpath.data.spark_engine import SparkEngine
from towpath.data.sql import NAMED, Side, Statements, distinct_ids, distinct_names, kept_codes, kept_ids
from towpath.data.vocabulary import UNKNOWN, Vocabulary
from towpath.errors import DataError
from towpath.memory import has_room, refuse_beyond

SIDES: tuple[Side, ...] = ("user", "item")
BATCH_ROWS = 1 << 17
_INCOMPLETE = "SELECT COUNT(*) FROM raw WHERE user_id IS NULL OR item_id IS NULL"
_DROP_SOURCE = "DROP VIEW raw; DROP VIEW IF EXISTS source; DROP TABLE IF EXISTS parsed"
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
    """The cleaned events with dense codes in the order of the ids, and what each step of cleaning dropped.

    Events that fit into memory are cleaned and sorted there. Others, and those with names of requests or
    policies, stay in the engine, which moves to the disk what it cannot hold.
    """
    names = ("user_code", "item_code", *raw.extras)
    size = raw.counts.rows * (SORT_BYTES + sum(np.dtype(FIELDS[name][1]).itemsize for name in names))
    if not isinstance(connection, SparkEngine) and not set(names) & set(NAMED) and has_room(size):
        return _encode_in_memory(connection, raw, cleaning)
    steps = encode_events(connection, raw, cleaning)
    columns = _fill(connection, Statements(raw.extras), steps[-1].rows)
    users, items = vocabulary(connection, "user"), vocabulary(connection, "item")
    return Interactions(user_ids=users, item_ids=items, **columns).positives, steps


def _encode_in_memory(
    connection: Engine, raw: Raw, cleaning: Cleaning
) -> tuple[Interactions, tuple[Step, ...]]:
    with file_errors(raw.source):
        ids = {side: _all_ids(connection, raw, side) for side in SIDES}
        least = cleaning.min_rating if "value" in raw.extras else None
        columns = _read_columns(connection, raw, least)
        lost = _lost_rows(connection, raw, len(columns["user_code"]), cleaning)
    connection.execute(_DROP_SOURCE)  # before sorting, which needs room
    events = EventArrays(columns, len(ids["user"]), len(ids["item"]))
    cleaner = Cleaner(events, raw.extras, lost)
    steps = cleaner.clean(cleaning)
    users, items = (_taken(ids[side], events.close_up(side)) for side in SIDES)
    fields: dict[str, Any] = {FIELDS[name][0]: column for name, column in events.columns.items()}
    return Interactions(user_ids=users, item_ids=items, **fields).positives, steps


def _all_ids(connection: Engine, raw: Raw, side: Side) -> pa.Array:
    """The ids of one side in the order of their codes; the table of ids is there from then on."""
    _number_ids(connection, raw, side)
    found: pa.ChunkedArray = (
        connection.sql(f"SELECT id FROM {side}_ids ORDER BY code").to_arrow_table().column(0)
    )
    return found.combine_chunks()


def _taken(ids: pa.Array, codes: NDArray[np.int64]) -> Vocabulary:
    return Vocabulary(ids if len(codes) == len(ids) else ids.take(pa.array(codes)))


def _read_columns(connection: Engine, raw: Raw, least: float | None) -> dict[str, NDArray[Any]]:
    """The encoded rows in the order of the file; rows without a user or an item are left out."""
    kinds = {name: FIELDS[name][1] for name in ("user_code", "item_code", *raw.extras)}
    kinds |= {} if least is None else {RATED: np.bool_}
    columns: dict[str, NDArray[Any]] = {name: np.empty(raw.counts.rows, kind) for name, kind in kinds.items()}
    columns["user_code"].fill(UNKNOWN)
    select = Statements(raw.extras).encoded(MISSING_TIME, least)
    read = 0
    for batch in connection.sql(select).to_arrow_reader(BATCH_ROWS):
        rows = batch.column("file_row").to_numpy()
        if len(rows) and rows.max() >= raw.counts.rows:
            raise _damaged(raw, int(rows.max()) + 1)
        read += len(rows)
        for name, column in columns.items():
            column[rows] = batch.column(name).to_numpy(zero_copy_only=False)
    if read == raw.counts.rows:
        return columns
    known = columns["user_code"] != UNKNOWN
    return {name: column[known] for name, column in columns.items()}


def encode_events(connection: Engine, raw: Raw, cleaning: Cleaning) -> tuple[Step, ...]:
    """What cleaning dropped; the tables are then those from which `Statements.in_order` selects."""
    statements = Statements(raw.extras)
    make_room(connection, raw.counts.rows)
    with file_errors(raw.source):
        for side in SIDES:
            _number_ids(connection, raw, side)
        connection.execute(statements.encode())
        events = SqlEvents(connection, statements)
        lost = _lost_rows(connection, raw, events.rows(), cleaning)
        cleaner = Cleaner(events, raw.extras, lost)
    connection.execute(_DROP_SOURCE)
    trust_statistics(connection)
    steps = cleaner.clean(cleaning)
    for side in SIDES:
        number_rows(connection, f"kept_{side}s", kept_codes(side), "code", "INTEGER")
    for extra in set(raw.extras) & set(NAMED):
        number_rows(connection, f"{extra}_names", distinct_names(extra), "code")
    return steps


def _number_ids(connection: Engine, raw: Raw, side: Side) -> None:
    """The table of the ids of one side with their codes."""
    ids = distinct_ids(side, raw.user_id if side == "user" else raw.item_id)
    number_rows(connection, f"{side}_ids", ids, "code", "INTEGER")


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


def _lost_rows(connection: Engine, raw: Raw, encoded: int, cleaning: Cleaning) -> int:
    """How many rows without ids the joins left out; raises where that is refused or nothing is there."""
    total = raw.counts.rows
    if total == 0:
        raise DataError(f"{raw.source.label} should hold events but has no rows.")
    if encoded < total and cleaning.missing == "refuse":
        refuse_missing_ids(connection, raw.source)
    incomplete = raw.source.incomplete
    if incomplete is None:
        incomplete = connection.execute(_INCOMPLETE).fetchall()[0][0]
    if encoded + incomplete != total:
        raise _damaged(raw, encoded, f", {incomplete:,} of them without a user or an item")
    return total - encoded


def _damaged(raw: Raw, found: int, among: str = "") -> DataError:
    return DataError(
        f"{raw.source.label} holds {raw.counts.rows:,} rows{among}, but {found:,} could be read; it is "
        "damaged, so write it again."
    )


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
