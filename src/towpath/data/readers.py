"""Event files to one relation `raw`: user_id, item_id, the extras that are there, and the row of the file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from towpath.data.columns import Columns
from towpath.data.scan import Source, open_source, place_of
from towpath.data.times import INTEGERS, UnlikeTimesError, time_expression
from towpath.errors import DataError

# Longer digits do not fit 64 bits; leading zeros, a plus or blanks would not come back from a number.
CANONICAL_INTEGER = "0|-?[1-9][0-9]{0,17}"
ID_KINDS = (
    *INTEGERS,
    "VARCHAR",
    "UUID",
    "DATE",
    "TIMESTAMP",
    "DOUBLE",
    "FLOAT",
    "DECIMAL",
    "BLOB",
    "BOOLEAN",
    "TIME",
)
NUMBERS = (*INTEGERS, "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")


@dataclass(frozen=True)
class Raw:
    """What `raw` holds: its source, its extra columns, and for each side the SQL that types its `id`."""

    source: Source
    extras: tuple[str, ...]
    user_id: str
    item_id: str


def read_raw(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[Path],
    columns: Columns,
    missing_value: float | None = None,
) -> Raw:
    """The relation `raw` over the files; a value equal to `missing_value` counts as not given."""
    source = open_source(connection, files, columns)
    kinds = {row[0]: row[1] for row in connection.execute("DESCRIBE source").fetchall()}
    sides = {side: _id(connection, source, side, kinds[side]) for side in ("user", "item")}
    extras = {}
    if "time" in source.places:
        extras["event_time"] = _time(connection, source, kinds["time"])
    if "value" in source.places:
        value = _number(connection, source, "value", kinds["value"])
        extras["value"] = value if missing_value is None else f"NULLIF({value}, {missing_value!r})"
    if "propensity" in source.places:
        extras["propensity"] = _propensity(connection, source, kinds["propensity"])
    if "exposure" in source.places:
        extras["exposure"] = _exposure(connection, source, kinds["exposure"])
    rows = connection.execute("SELECT COUNT(*) FROM source").fetchall()[0][0]
    row = "INTEGER" if rows < 2**31 else "BIGINT"  # four bytes less for each row that is sorted
    chosen = "".join(f", {sql} AS {extra}" for extra, sql in extras.items())
    connection.execute(
        f"CREATE VIEW raw AS SELECT {sides['user'][0]} AS user_id, {sides['item'][0]} AS item_id{chosen}, "
        f"CAST(file_row AS {row}) AS file_row FROM source"
    )
    return Raw(source, tuple(extras), sides["user"][1], sides["item"][1])


def refuse_missing_ids(connection: duckdb.DuckDBPyConnection, source: Source) -> None:
    """Raise for events without a user or an item."""
    for side in ("user", "item"):
        problem = (
            f"Every event needs {'an' if side == 'item' else 'a'} {side} (column {source.column(side)!r})"
        )
        _refuse(connection, source, side, f'"{side}" IS NULL', problem, "Fill them in or remove those rows.")


def _id(connection: duckdb.DuckDBPyConnection, source: Source, side: str, kind: str) -> tuple[str, str]:
    """SQL for the id in `raw`, and for its final type."""
    column = f'"{side}"'
    if kind == "JSON":
        return _json_id(connection, source, side), "id"
    if not kind.startswith(ID_KINDS) or kind.endswith("]"):
        raise DataError(
            f"A {side} id should be a number, text, date or UUID, but column {source.column(side)!r} of "
            f"{source.label} holds {kind}; name another column."
        )
    if source.layout.kind == "delimited":
        other = connection.execute(
            f"SELECT COUNT(*) FROM (SELECT DISTINCT {column} AS id FROM source) "
            f"WHERE NOT regexp_full_match(id, '{CANONICAL_INTEGER}')"
        ).fetchone()
        return column, "id" if other and other[0] else "CAST(id AS BIGINT)"
    return column, "id"


def _json_id(connection: duckdb.DuckDBPyConnection, source: Source, side: str) -> str:
    """SQL for an id from JSON: text stays text and numbers stay numbers."""
    found = connection.execute(f'SELECT DISTINCT json_type("{side}") FROM source').fetchall()
    kinds = {row[0] for row in found} - {None, "NULL"}
    if kinds <= {"VARCHAR"}:
        return f"""("{side}" ->> '$')"""
    if kinds <= {"BIGINT", "UBIGINT"}:
        return f'CAST("{side}" AS BIGINT)'
    if kinds <= {"BIGINT", "UBIGINT", "DOUBLE"}:
        return f'CAST("{side}" AS DOUBLE)'
    raise DataError(
        f"The {side} ids of {source.label} should be all text or all numbers, but column "
        f"{source.column(side)!r} mixes {', '.join(sorted(kinds)).lower()}; write them in one way."
    )


def _time(connection: duckdb.DuckDBPyConnection, source: Source, kind: str) -> str:
    try:
        return time_expression(connection, '"time"', kind)
    except UnlikeTimesError as error:
        problem = f"The times of column {source.column('time')!r} should all be {error.expected}"
        condition = f'"time" IS NOT NULL AND {error.condition}'
        _refuse(connection, source, "time", condition, problem, "Write all times in one form.")
        raise


def _number(connection: duckdb.DuckDBPyConnection, source: Source, part: str, kind: str) -> str:
    """SQL for a column that must be numeric where it is given."""
    if kind.startswith(NUMBERS):
        return f'CAST("{part}" AS FLOAT)'
    number = f'TRY_CAST("{part}" AS DOUBLE)'
    condition = f'"{part}" IS NOT NULL AND ({number} IS NULL OR isinf({number}))'
    problem = f"The {part} column {source.column(part)!r} should hold numbers"
    if kind != "VARCHAR":
        raise DataError(f"{problem}, but in {source.label} it holds {kind}; name another column.")
    _refuse(connection, source, part, condition, problem, "Mend those rows or name another column.")
    return f"CAST({number} AS FLOAT)"


def _propensity(connection: duckdb.DuckDBPyConnection, source: Source, kind: str) -> str:
    number = _number(connection, source, "propensity", kind)
    problem = f"A propensity (column {source.column('propensity')!r}) should be above 0 and at most 1"
    condition = f"{number} IS NOT NULL AND NOT ({number} > 0 AND {number} <= 1)"
    _refuse(connection, source, "propensity", condition, problem, "Mend those rows or name another column.")
    return number


def _exposure(connection: duckdb.DuckDBPyConnection, source: Source, kind: str) -> str:
    flag = 'TRY_CAST("exposure" AS BOOLEAN)'
    problem = (
        f"The exposure column {source.column('exposure')!r} should say true or false (1 or 0) of every event"
    )
    _refuse(
        connection, source, "exposure", f"{flag} IS NULL", problem, "Fill them in or name another column."
    )
    return flag


def _refuse(
    connection: duckdb.DuckDBPyConnection, source: Source, part: str, condition: str, *sentence: str
) -> None:
    """Raise if the condition is true of any row, with how many and the first of them."""
    counted = connection.execute(
        f"SELECT (SELECT COUNT(*) FROM source), COUNT(*), MIN(file_row) FROM source WHERE {condition}"
    ).fetchone()
    assert counted is not None  # an aggregate without groups always gives one row
    total, bad, row = counted
    if not bad:
        return
    example = connection.execute(f'SELECT "{part}" FROM source WHERE file_row = {row}').fetchone()
    shown = f"{example[0]!r} in " if example and example[0] is not None else ""
    expected, advice = sentence
    raise DataError(
        f"{expected}; {bad:,} of {total:,} {'does' if bad == 1 else 'do'} not "
        f"(first: {shown}{place_of(connection, source, row)}). {advice}"
    )
