"""Small exposure logs, written row by row."""

import json

from towpath.serving.exposure_log.tables import (
    AssignmentRow,
    LogTables,
    OutcomeRow,
    RequestRow,
    Row,
    table_of,
)

MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE


def request(number: int, user: str | None, arm: str, time: int, items: str = "abc") -> RequestRow:
    """A request numbered r0, r1 ... whose slate is one item for each letter."""
    slate = (json.dumps(list(items)), json.dumps([1.0] * len(items)), json.dumps([1.0] * len(items)))
    return RequestRow(f"r{number}", time, user, "recommend", None, arm, f"{arm}-1", 0, *slate)


def click(event: str, number: int, item: str, time: int) -> OutcomeRow:
    return OutcomeRow(event, time, f"r{number}", item, "click", 0.0, 0.0)


def order(event: str, number: int, time: int, units: float = 1.0, value: float = 10.0) -> OutcomeRow:
    return OutcomeRow(event, time, f"r{number}", "a", "order", units, value)


def assigned(time: int, *arms: str, salt: str = "s", shares: tuple[float, ...] = ()) -> AssignmentRow:
    return AssignmentRow(time, salt, json.dumps(arms), json.dumps(shares or [1 / len(arms)] * len(arms)))


def log_of(*rows: Row) -> LogTables:
    kinds = {"requests": RequestRow, "outcomes": OutcomeRow, "assignments": AssignmentRow}
    return LogTables(
        **{
            name: table_of(name, [row for row in rows if isinstance(row, kind)])
            for name, kind in kinds.items()
        }
    )
