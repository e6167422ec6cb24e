"""SQL for columns of numbers and flags, refused where a row does not hold one."""

import numpy as np

from towpath.data.engine import Engine
from towpath.data.scan import Source, location_of
from towpath.data.times import INTEGERS
from towpath.errors import DataError

NUMBERS = (*INTEGERS, "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
LARGEST_FLOAT = float(np.finfo(np.float32).max)


def number_sql(connection: Engine, source: Source, role: str, kind: str) -> str:
    """SQL for a column that must be numeric where it is given."""
    if is_number(kind):
        return _finite(connection, source, role, f'TRY_CAST("{role}" AS DOUBLE)')
    number = f'number_in("{role}")'
    infinite = f"ABS({number}) = CAST('Infinity' AS DOUBLE)"
    condition = f'"{role}" IS NOT NULL AND ({number} IS NULL OR {infinite})'
    problem = f"The {role} column {source.column(role)!r} should hold numbers"
    if kind != "VARCHAR":
        raise DataError(f"{problem}, but in {source.label} it holds {kind}; name another column.")
    refuse_rows(connection, source, role, condition, problem, "Mend those rows or name another column.")
    return _finite(connection, source, role, number)


def _finite(connection: Engine, source: Source, role: str, number: str) -> str:
    """SQL for a number as a single float; raises where one is too large for that."""
    condition = f"abs({number}) > {LARGEST_FLOAT!r} AND NOT isnan({number})"  # NaN is a missing value
    problem = f"The {role} column {source.column(role)!r} should hold numbers of single precision"
    refuse_rows(connection, source, role, condition, problem, "Mend those rows or name another column.")
    return f"CAST({number} AS FLOAT)"


def is_number(kind: str) -> bool:
    """Whether a type is one of numbers; a list of them is not."""
    return kind.startswith(NUMBERS) and not kind.endswith("]")


def propensity_sql(connection: Engine, source: Source, kind: str) -> str:
    """SQL for a column of chances."""
    number = number_sql(connection, source, "propensity", kind)
    problem = f"A propensity (column {source.column('propensity')!r}) should be above 0 and at most 1"
    condition = f"{number} IS NOT NULL AND NOT ({number} > 0 AND {number} <= 1)"
    refuse_rows(
        connection, source, "propensity", condition, problem, "Mend those rows or name another column."
    )
    return number


def flag_sql(kind: str) -> str:
    """SQL for whether something was shown; NULL where the column does not say so."""
    return 'flag_in("exposure")' if kind == "VARCHAR" else 'TRY_CAST("exposure" AS BOOLEAN)'


def exposure_sql(connection: Engine, source: Source, kind: str) -> str:
    """The same, once it is sure that every row says it."""
    flag = flag_sql(kind)
    problem = (
        f"The exposure column {source.column('exposure')!r} should say true or false (1 or 0) of every event"
    )
    refuse_rows(
        connection, source, "exposure", f"{flag} IS NULL", problem, "Fill them in or name another column."
    )
    return flag


def _example(kind: str, text: str) -> str:
    return f"{text if is_number(kind.upper()) else repr(text)} in "


def refuse_rows(connection: Engine, source: Source, role: str, condition: str, *sentence: str) -> None:
    """Raise if the condition is true of any row, with how many and the first of them."""
    # As text: some types, such as times with a zone, have no value in Python without another package.
    example = f'typeof("{role}"), SUBSTRING(CAST("{role}" AS STRING), 1, 80)'
    refuse_where(connection, source, condition, example, *sentence)


def refuse_where(connection: Engine, source: Source, condition: str, example: str, *sentence: str) -> None:
    """The same, with SQL for the `example`: type and text of what the first such row holds."""
    [(total, bad, row)] = connection.execute(
        f"SELECT (SELECT COUNT(*) FROM source), COUNT(*), MIN(file_row) FROM source WHERE {condition}"
    ).fetchall()  # not fetchone, which leaves the result open and the connection in use
    if not bad:
        return
    [first] = connection.execute(f"SELECT {example} FROM source WHERE file_row = {row}").fetchall()
    shown = "" if first[1] is None else _example(*first)
    expected, advice = sentence
    raise DataError(
        f"{expected}; {bad:,} of {total:,} {'does' if bad == 1 else 'do'} not "
        f"(first: {shown}{location_of(connection, source, row)}). {advice}"
    )
