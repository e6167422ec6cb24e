"""Times as numbers that sort, whatever form they had in the file."""

from towpath.data.engine import Engine
from towpath.errors import DataError

# Whole numbers like 20220425: a day of a year between 1900 and 2099.
_DAY = "(19|20)[0-9][0-9](0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])"
# Seconds with a fraction, dates and timestamps become microseconds since 1970; integers stay what they are.
FORMS = {
    "days like 20220425": f"CASE WHEN full_match({{x}}, '{_DAY}') THEN day_micros({{x}}) END",
    "integers": "CASE WHEN full_match({x}, '\\s*[+-]?[0-9]+\\s*') THEN TRY_CAST({x} AS BIGINT) END",
    "seconds": "TRY_CAST(round(number_in({x}) * 1e6) AS BIGINT)",
    "ISO dates or timestamps": "iso_micros({x})",
    "dates like 'Tue Oct 17 09:40:11 -0700 2017'": "weekday_micros({x})",
}
INTEGERS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "HUGEINT",
)


def time_expression(connection: Engine, column: str, kind: str) -> str:
    """The SQL that turns the source's column of this type into a whole number that sorts as the time does."""
    if kind in INTEGERS:
        return _expression_of_integers(connection, column)
    if kind in ("FLOAT", "DOUBLE") or (kind.startswith("DECIMAL") and not kind.endswith("]")):
        given = f"CASE WHEN NOT isnan(CAST({column} AS DOUBLE)) THEN CAST({column} AS DOUBLE) END"
        return _checked(connection, given, f"TRY_CAST(round({given} * 1e6) AS BIGINT)")
    if kind == "DATE" or (kind.startswith("TIMESTAMP") and not kind.endswith("]")):
        return f"micros({column})"
    if kind != "VARCHAR":
        raise DataError(f"A time should be a number, a date or a timestamp, but the column holds {kind}.")
    return _expression_of_text(connection, column)


def _expression_of_integers(connection: Engine, column: str) -> str:
    """Days like 20220425 become microseconds; other whole numbers stay what they are."""
    day = FORMS["days like 20220425"].format(x=f"CAST({column} AS STRING)")
    # Only what lies between the first and the last such day need be written out as text.
    day = f"CASE WHEN {column} BETWEEN 19000101 AND 20991231 THEN {day} END"
    others = connection.execute(f"SELECT COUNT({column}), COUNT({day}) FROM source").fetchone()
    assert others is not None  # an aggregate without groups always gives one row
    if others[0] and others[0] == others[1]:
        return day
    return _checked(connection, column, f"TRY_CAST({column} AS BIGINT)")


def _checked(connection: Engine, column: str, time: str) -> str:
    """The SQL of the time; raises where a number is too large for one."""
    counts = connection.execute(f"SELECT COUNT({column}), COUNT({time}) FROM source").fetchall()[0]
    if counts[0] != counts[1]:
        raise UnlikeTimesError(f"{column} IS NOT NULL AND {time} IS NULL", "numbers within 64 bits")
    return time


def _expression_of_text(connection: Engine, column: str) -> str:
    """The one form that all times of the column have, as SQL; raises when they have several or none."""
    forms = {form: sql.format(x=column) for form, sql in FORMS.items()}
    counts = connection.execute(
        f"SELECT COUNT({column}), {', '.join(f'COUNT({sql})' for sql in forms.values())} FROM source"
    ).fetchone()
    assert counts is not None  # an aggregate without groups always gives one row
    present, parsed = counts[0], dict(zip(forms, counts[1:], strict=True))
    likeliest = max(forms, key=lambda form: parsed[form])  # the earlier of equals
    if parsed[likeliest] == present:
        return forms[likeliest]
    raise UnlikeTimesError(f"{forms[likeliest]} IS NULL", likeliest if parsed[likeliest] else None)


class UnlikeTimesError(Exception):
    """Times of several forms, or of none; the reader adds which and where."""

    def __init__(self, condition: str, expected: str | None) -> None:
        super().__init__(condition)
        self.condition = condition  # SQL that is true of a time which has not the expected form
        self.expected = expected or "whole numbers, seconds, ISO dates or timestamps"
