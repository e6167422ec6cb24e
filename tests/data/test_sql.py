import re

import duckdb
import pytest

from towpath.data import sql

STATEMENTS = [
    sql.distinct_ids("user"),
    sql.Statements(sql.EXTRAS).encode(),
    sql.Statements(sql.EXTRAS).keep_rated(3.5),
    sql.Statements(sql.EXTRAS).keep_one_of_repeats("first"),
    sql.Statements(()).keep_one_of_repeats("last"),
    sql.Statements(sql.EXTRAS).keep_counted("user", 5, 100),
    sql.Statements(sql.EXTRAS).in_order(-1),
    sql.kept_codes("item"),
    sql.distinct_names("request"),
    sql.kept_ids("item"),
    sql.COUNT_EVENTS,
    sql.LEAVE_LAST_TWO,
    sql.first_moment_after(3),
    sql.parts_by_threshold("draw", 0.8, 0.9),
]
# Functions and clauses that the standard and Spark both have.
STANDARD_FUNCTIONS = {"CAST", "COUNT", "MIN", "MAX", "SUM", "ROW_NUMBER", "COALESCE", "LOWER"}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_call_standard_functions_only(statement: str) -> None:
    called = set(re.findall(r"\b([A-Za-z_]+)\(", statement))
    assert called <= STANDARD_FUNCTIONS
    assert not re.search(r"\b(QUALIFY|EXCLUDE|REPLACE|PIVOT|SAMPLE|ASOF)\b|::|\[", statement)
    assert len(duckdb.extract_statements(statement)) == 1


def test_repeats_without_a_time_are_first_before_those_with_one() -> None:
    statements = sql.Statements(("event_time",))
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE events AS SELECT * FROM (VALUES (0, 0, 5, 0), (0, 0, NULL, 1), (0, 0, 9, 2))"
            " AS t(user_code, item_code, event_time, file_row)"
        )
        first = connection.execute(statements.keep_one_of_repeats("first")).fetchall()
        last = connection.execute(statements.keep_one_of_repeats("last")).fetchall()
    assert first == [(0, 0, None, 1)]
    assert last == [(0, 0, 9, 2)]
