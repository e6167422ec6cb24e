"""The exposure log as training data: one row for each item that was shown, with what became of it."""

from dataclasses import dataclass
from pathlib import Path

import duckdb

from towpath.data.engine import engine
from towpath.data.table_files import table_file
from towpath.serving.exposure_log.tables import LogTables

# Rows of the file that are held at once.
_ROWS_AT_ONCE = 2**17


@dataclass(frozen=True)
class Exported:
    """What was exported, and what could not be joined."""

    rows: int
    requests: int
    clicked: int
    ordered: int
    outcomes_without_exposure: int  # of a request that is not in the log, or an item that it did not show


def export_log(log: LogTables, out: Path) -> Exported:
    """The file of the log, Parquet or CSV by its ending, by time, request and position.

    user, item, time, request, position (from 1), score, propensity, policy (the arm), model_version, label
    (1 if the item was clicked or ordered), units, value. Ids are integers if all of them are written like
    integers, else text. An event counts once, however often it was sent.
    """
    with engine() as connection:
        for name in ("requests", "outcomes"):
            connection.register(name, getattr(log, name))
        connection.execute(_SHOWN)
        connection.execute(_OUTCOMES)
        users, items = (_kind(connection, side) for side in ("user_id", "item_id"))
        connection.execute(_EXPORTED.format(users=users, items=items))
        rows = connection.sql("SELECT * FROM exported").to_arrow_reader(_ROWS_AT_ONCE)
        with table_file(out, rows.schema) as file:
            for batch in rows:
                file.write_batch(batch)
        found = connection.execute(_COUNTS).fetchone()
        return Exported(*(int(count) for count in found or (0,) * 5))


def _kind(connection: duckdb.DuckDBPyConnection, column: str) -> str:
    """The type of a column of ids: integers if every id is one, in its usual form, else text."""
    other = f"""SELECT COUNT(*) FROM shown WHERE {column} IS NOT NULL
        AND CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR) IS DISTINCT FROM {column}"""
    found = connection.execute(other).fetchone()
    return "BIGINT" if found and found[0] == 0 else "VARCHAR"


_SHOWN = """
    CREATE TABLE shown AS
    SELECT * EXCLUDE (slots, s), s.item AS item_id, s.score AS score, s.propensity AS propensity FROM (
        SELECT request_id, time, user_id, arm, model_version, slots, UNNEST(slots) AS s,
            GENERATE_SUBSCRIPTS(slots, 1) AS position
        FROM (
            SELECT request_id, time, user_id, arm, model_version, LIST_TRANSFORM(
                LIST_ZIP(
                    from_json(items, '["VARCHAR"]'),
                    from_json(scores, '["DOUBLE"]'),
                    from_json(propensities, '["DOUBLE"]')
                ), LAMBDA x: {'item': x[1], 'score': x[2], 'propensity': x[3]}
            ) AS slots
            FROM requests
        ) AS zipped
    ) AS slate"""

_OUTCOMES = """
    CREATE TABLE happened AS
    SELECT request_id, item_id, COUNT(*) AS events, BOOL_OR(kind = 'click') AS clicked,
        BOOL_OR(kind = 'order') AS ordered, SUM(CASE WHEN kind = 'order' THEN units ELSE 0 END) AS units,
        SUM(CASE WHEN kind = 'order' THEN value ELSE 0 END) AS value
    FROM (
        SELECT event_id, ARG_MIN(request_id, time) AS request_id, ARG_MIN(item_id, time) AS item_id,
            ARG_MIN(kind, time) AS kind, ARG_MIN(units, time) AS units, ARG_MIN(value, time) AS value
        FROM outcomes GROUP BY event_id
    ) AS once GROUP BY request_id, item_id"""

_EXPORTED = """
    CREATE TABLE exported AS
    SELECT CAST(s.user_id AS {users}) AS "user", CAST(s.item_id AS {items}) AS item,
        make_timestamptz(s.time) AS time, s.request_id AS request, s.position, s.score, s.propensity,
        s.arm AS policy, s.model_version,
        CAST(CASE WHEN h.request_id IS NULL THEN 0 ELSE 1 END AS TINYINT) AS label,
        COALESCE(h.units, 0.0) AS units, COALESCE(h.value, 0.0) AS value
    FROM shown AS s LEFT JOIN happened AS h ON s.request_id = h.request_id AND s.item_id = h.item_id
    ORDER BY s.time, s.request_id, s.position"""

_COUNTS = """
    SELECT (SELECT COUNT(*) FROM exported), (SELECT COUNT(*) FROM requests),
        (SELECT COUNT(*) FROM happened h SEMI JOIN shown s USING (request_id, item_id) WHERE clicked),
        (SELECT COUNT(*) FROM happened h SEMI JOIN shown s USING (request_id, item_id) WHERE ordered),
        (SELECT COALESCE(SUM(events), 0) FROM happened h ANTI JOIN shown s USING (request_id, item_id))"""
