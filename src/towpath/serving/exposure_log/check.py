"""Whether the rows of an exposure log are as the server writes them; what is not is said before it is used.

A log may have been damaged, edited or written by something else. What it holds is training data and the basis
of decisions, so a row that cannot be right is refused rather than read as something else.
"""

from dataclasses import dataclass

import duckdb

from towpath.boundary import reading
from towpath.data.engine import engine
from towpath.errors import DataError
from towpath.serving.exposure_log.tables import LogTables

# The first and the last microsecond that a calendar has; what the server takes for units and value.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
_MOST_UNITS, _MOST_VALUE = 1e9, 1e12


@dataclass(frozen=True)
class _Rule:
    """What every row of a table must be: in words, and as SQL that is true of it."""

    words: str
    sql: str


def refuse_bad_rows(log: LogTables, place: str) -> None:
    """Nothing, unless a row of the log breaks one of the rules; then how many do, and the first of them."""
    with reading(place), engine() as connection:
        for table, (key, rules) in _RULES.items():
            connection.register(table, getattr(log, table))
            for rule in rules:
                _refuse(connection, place, table, key, rule)


def _refuse(connection: duckdb.DuckDBPyConnection, place: str, table: str, key: str, rule: _Rule) -> None:
    broken = f"NOT COALESCE({rule.sql}, FALSE)"
    [(bad, first, rows)] = connection.execute(
        f"SELECT COUNT(*), MIN(CAST({key} AS VARCHAR)), (SELECT COUNT(*) FROM {table}) FROM {table} "
        f"WHERE {broken}"
    ).fetchall()
    if bad:
        raise DataError(
            f"{rule.words} in an exposure log, but not in {bad:,} of the {rows:,} {table} of {place} "
            f"(such as {key} {str(first)[:40]!r}); restore it from a copy, or delete those rows."
        )


def _all(array: str, condition: str) -> str:
    """SQL: the text is a JSON array, and the condition is true of the type t of each of its elements.

    CASE keeps what is no JSON away from functions that raise for it.
    """
    types = f"LIST_TRANSFORM(json_extract({array}, '$[*]'), LAMBDA e: json_type(e))"
    return f"""CASE WHEN json_valid({array}) THEN json_type({array}) = 'ARRAY'
        AND LIST_BOOL_AND(LIST_TRANSFORM({types}, LAMBDA t: {condition})) IS DISTINCT FROM FALSE
        ELSE FALSE END"""


def _within(array: str, low: str, high: str) -> str:
    """SQL: every number of a JSON array of numbers lies within these."""
    numbers = f"from_json({array}, '[\"DOUBLE\"]')"
    return f"COALESCE(LIST_MIN({numbers}) >= {low} AND LIST_MAX({numbers}) <= {high}, TRUE)"


_NUMBER = "t IN ('DOUBLE', 'UBIGINT', 'BIGINT')"
_TIME = _Rule("The time of a row is microseconds since 1970", f"time BETWEEN {_FIRST} AND {_LAST}")
_SAME_LENGTH = """json_array_length(items) = json_array_length(scores)
    AND json_array_length(items) = json_array_length(propensities)"""
_RULES: dict[str, tuple[str, tuple[_Rule, ...]]] = {
    "requests": (
        "request_id",
        (
            _TIME,
            _Rule("A request has an id, arm and model", "LENGTH(request_id || arm || model_version) > 0"),
            _Rule("A slate is a JSON array of ids", _all("items", "t IN ('VARCHAR', 'BIGINT', 'UBIGINT')")),
            # A score that is not finite is written as null.
            _Rule("Scores are a JSON array of numbers", _all("scores", f"{_NUMBER} OR t = 'NULL'")),
            _Rule("Propensities are a JSON array of numbers", _all("propensities", _NUMBER)),
            _Rule("Propensities lie within 0 and 1", _within("propensities", "0", "1.000001")),
            _Rule("Items, scores and propensities are equally many", _SAME_LENGTH),
        ),
    ),
    "outcomes": (
        "event_id",
        (
            _TIME,
            _Rule("An outcome has an event, a request and an item", "LENGTH(event_id || request_id) > 0 "
                  "AND item_id IS NOT NULL"),
            _Rule("An outcome is a click or an order", "kind IN ('click', 'order')"),
            _Rule(f"Units are within 0 and {_MOST_UNITS:g}", f"units BETWEEN 0 AND {_MOST_UNITS}"),
            _Rule(f"A value is within 0 and {_MOST_VALUE:g}", f"value BETWEEN 0 AND {_MOST_VALUE}"),
        ),
    ),
    "assignments": (
        "time",
        (
            _TIME,
            _Rule("The arms are a JSON array of names", _all("arms", "t = 'VARCHAR'")),
            _Rule("The name of an arm stands once", "LEN(from_json(arms, '[\"VARCHAR\"]')) > 0 AND "
                  "LIST_UNIQUE(from_json(arms, '[\"VARCHAR\"]')) = json_array_length(arms)"),
            _Rule("The shares are a JSON array of numbers", _all("shares", _NUMBER)),
            _Rule("Every arm has a share", "json_array_length(arms) = json_array_length(shares)"),
            _Rule("Shares lie within 0 and 1 and sum to 1", f"{_within('shares', '0', '1')} AND "
                  "ABS(LIST_SUM(from_json(shares, '[\"DOUBLE\"]')) - 1) < 1e-6"),
        ),
    ),
}  # fmt: skip
