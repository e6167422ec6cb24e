"""What the exposure log holds, whichever database keeps it.

requests      one row for each answer: who asked, which arm and model answered, and the slate, slot by slot
outcomes      one row for each click or order, found again by the request that showed the item
assignments   one row whenever the arms or their shares changed

Ids of users and items are text. Times are microseconds since 1970, UTC. The slate's items, scores and
propensities are JSON arrays of one length, first slot first.
"""

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa


class RequestRow(NamedTuple):
    """One answer of the server."""

    request_id: str
    time: int
    user_id: str | None  # None: the request named nobody
    endpoint: str  # recommend or similar
    item_id: str | None  # what similar items were asked for
    arm: str
    model_version: str
    fallback: int  # 1 where the model knew nothing of the user
    items: str
    scores: str
    propensities: str


class OutcomeRow(NamedTuple):
    """What somebody did with an item that they were shown."""

    event_id: str
    time: int
    request_id: str
    item_id: str
    kind: str  # click or order
    units: float
    value: float


class AssignmentRow(NamedTuple):
    """Which arms there are from this time on, and which share of the users each should have."""

    time: int
    salt: str
    arms: str  # JSON array of names, the arm to compare with first
    shares: str  # JSON array of shares that sum to one


Row = RequestRow | OutcomeRow | AssignmentRow
TABLES: dict[str, type[Row]] = {
    "requests": RequestRow,
    "outcomes": OutcomeRow,
    "assignments": AssignmentRow,
}
_ARROW = {"time": pa.int64(), "fallback": pa.int64(), "units": pa.float64(), "value": pa.float64()}


@dataclass(frozen=True)
class LogTables:
    """The whole log as Arrow tables; rows in the order in which each file got them."""

    requests: pa.Table
    outcomes: pa.Table
    assignments: pa.Table


def columns_of(table: str) -> tuple[str, ...]:
    """The columns of one of the tables, in order."""
    return TABLES[table]._fields


def schema_of(table: str) -> pa.Schema:
    """The Arrow types of one of the tables."""
    return pa.schema([(name, _ARROW.get(name, pa.string())) for name in columns_of(table)])


def table_of(table: str, rows: list[tuple[object, ...]]) -> pa.Table:
    """Rows of one of the tables as Arrow."""
    schema = schema_of(table)
    columns: list[tuple[object, ...]] = list(zip(*rows, strict=True)) if rows else [() for _ in schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
