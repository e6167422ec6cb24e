"""Times as numbers that sort, whatever form they had in the file."""

import duckdb

from towpath.errors import DataError

# Seconds with a fraction, dates and timestamps become microseconds since 1970; integers stay what they are.
FORMS = {
    "integers": "CASE WHEN regexp_full_match({x}, '\\s*[+-]?[0-9]+\\s*') THEN TRY_CAST({x} AS BIGINT) END",
    "seconds": "CAST(round(TRY_CAST({x} AS DOUBLE) * 1e6) AS BIGINT)",
    "ISO dates or timestamps": "epoch_us(TRY_CAST({x} AS TIMESTAMPTZ))",
    "dates like 'Tue Oct 17 09:40:11 -0700 2017'": "epoch_us(try_strptime({x}, '%a %b %d %H:%M:%S %z %Y'))",
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


def time_expression(connection: duckdb.DuckDBPyConnection, column: str, kind: str) -> str:
    """The SQL that turns the source's column of this type into a whole number that sorts as the time does."""
    if kind in INTEGERS:
        return f"CAST({column} AS BIGINT)"
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return f"CAST(round(CAST({column} AS DOUBLE) * 1e6) AS BIGINT)"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return f"epoch_us({column})"
    if kind != "VARCHAR":
        raise DataError(f"A time should be a number, a date or a timestamp, but the column holds {kind}.")
    return _expression_of_text(connection, column)


def _expression_of_text(connection: duckdb.DuckDBPyConnection, column: str) -> str:
    """The one form that all times of the column have, as SQL; raises when they have several or none."""
    forms = {form: sql.format(x=column) for form, sql in FORMS.items()}
    counts = connection.execute(
        f"SELECT COUNT({column}), {', '.join(f'COUNT({sql})' for sql in forms.values())} FROM source"
    ).fetchone()
    assert counts is not None  # an aggregate without groups always gives one row
    present, parsed = counts[0], dict(zip(forms, counts[1:], strict=True))
    likeliest = max(forms, key=lambda form: parsed[form])  # the earlier of equals: integers before seconds
    if parsed[likeliest] == present:
        return forms[likeliest]
    raise UnlikeTimesError(f"{forms[likeliest]} IS NULL", likeliest if parsed[likeliest] else None)


class UnlikeTimesError(Exception):
    """Times of several forms, or of none; the reader adds which and where."""

    def __init__(self, condition: str, expected: str | None) -> None:
        super().__init__(condition)
        self.condition = condition  # SQL that is true of a time which has not the expected form
        self.expected = expected or "whole numbers, seconds, ISO dates or timestamps"
