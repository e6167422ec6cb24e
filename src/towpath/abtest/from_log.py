"""Per-user, per-day totals of an experiment, computed from the exposure log by SQL."""

import json
from dataclasses import dataclass

import duckdb
import numpy as np

from towpath.abtest.totals import COLUMNS, DailyTotals, UserTotals
from towpath.data.engine import engine
from towpath.errors import DataError
from towpath.serving.exposure_log.tables import LogTables

MICROSECONDS = 1_000_000
_DAY = 86_400 * MICROSECONDS
# Before any time that a log can hold.
EVER = -(2**62)


@dataclass(frozen=True)
class Assignment:
    """Which arms the experiment has, the share of each, and since when it has been so."""

    arms: tuple[str, ...]
    shares: tuple[float, ...]
    since: int = EVER


@dataclass(frozen=True)
class Window:
    """Which part of the log is the experiment; visits are a user's requests this close to each other."""

    since: int | None = None  # microseconds since 1970; None: since the arms or their shares last changed
    visit_minutes: float = 30.0


@dataclass(frozen=True)
class Excluded:
    """What is in the log but not in the experiment."""

    users_in_several_arms: int
    requests_without_user: int
    outcomes_without_request: int


@dataclass(frozen=True)
class ExperimentLog:
    """An experiment as its log has it."""

    assignment: Assignment
    totals: DailyTotals
    excluded: Excluded


def experiment_log(log: LogTables, window: Window) -> ExperimentLog:
    """The totals of every user, and what had to be left out."""
    assignment = assignment_of(log, window.since)
    with engine() as connection:
        for name in ("requests", "outcomes"):
            connection.register(name, getattr(log, name))
        gap, since = round(window.visit_minutes * 60 * MICROSECONDS), assignment.since
        connection.execute(_FOUND)
        connection.execute(_MEMBERS, {"since": since})
        connection.execute(_EVENTS, {"gap": gap})
        excluded = Excluded(*(_one(connection, query, since) for query in _EXCLUDED))
        return ExperimentLog(assignment, _totals(connection, assignment), excluded)


def assignment_of(log: LogTables, since: int | None = None) -> Assignment:
    """The arms as they were last configured, and since when; equal shares where the log does not say."""
    rows = sorted(log.assignments.to_pylist(), key=lambda row: row["time"])
    if not rows:
        arms = sorted(set(log.requests["arm"].to_pylist()), key=lambda arm: (arm != "control", arm))
        return Assignment(tuple(arms), (1 / max(1, len(arms)),) * len(arms), EVER if since is None else since)
    setups = [(row["salt"], row["arms"], row["shares"]) for row in rows]
    changes = [place for place in range(1, len(rows)) if setups[place] != setups[place - 1]]
    began = rows[changes[-1]]["time"] if changes else EVER
    arms, shares = json.loads(setups[-1][1]), json.loads(setups[-1][2])
    return Assignment(tuple(arms), tuple(shares), began if since is None else since)


def _totals(connection: duckdb.DuckDBPyConnection, assignment: Assignment) -> DailyTotals:
    members = connection.execute("SELECT code, arm FROM members ORDER BY code").fetchnumpy()
    places = {arm: place for place, arm in enumerate(assignment.arms)}
    unknown = sorted(set(members["arm"].tolist()) - set(places))
    if unknown:
        raise DataError(
            f"The log has users of the arm {unknown[0]!r}, and the arms configured last are "
            f"{', '.join(assignment.arms)}; say with --since when these began."
        )
    arm_of = np.array([places[arm] for arm in members["arm"].tolist()], dtype=np.int64)
    during = connection.execute(_DURING, {"day": _DAY}).fetchnumpy()
    before = connection.execute(_BEFORE).fetchnumpy()
    past = UserTotals(*(before[name].astype(np.float64) for name in COLUMNS))
    return DailyTotals(
        arms=assignment.arms,
        arm_of=arm_of,
        users=during["code"].astype(np.int64),
        days=during["day"].astype(np.int64),
        did=UserTotals(*(during[name].astype(np.float64) for name in COLUMNS)),
        before=past if past.visits.any() else None,
    )


def _one(connection: duckdb.DuckDBPyConnection, query: str, since: int) -> int:
    found = connection.execute(query, {"since": since} if "$since" in query else None).fetchone()
    return int(found[0]) if found else 0


# Each event once, however often and to however many workers it was sent; what it was about is its request's.
_FOUND = """
    CREATE TABLE found AS
    SELECT r.user_id, r.arm, o.request_id, o.item_id, o.kind, o.units, o.value, o.time
    FROM (
        SELECT event_id, MIN(time) AS time, ARG_MIN(request_id, time) AS request_id,
            ARG_MIN(item_id, time) AS item_id, ARG_MIN(kind, time) AS kind,
            ARG_MIN(units, time) AS units, ARG_MIN(value, time) AS value
        FROM outcomes GROUP BY event_id
    ) AS o JOIN requests AS r ON o.request_id = r.request_id
    WHERE r.user_id IS NOT NULL"""

_SINGLE = """
    SELECT user_id, MIN(arm) AS arm FROM requests
    WHERE user_id IS NOT NULL AND time >= $since
    GROUP BY user_id HAVING COUNT(DISTINCT arm) = 1"""

_MEMBERS = f"""
    CREATE TABLE members AS
    SELECT user_id, arm, ROW_NUMBER() OVER (ORDER BY user_id) - 1 AS code, CAST($since AS BIGINT) AS since
    FROM ({_SINGLE}) AS single"""

# One row for whatever happened, with zeros for what it was not. A second click on the same item of the same
# answer is no second click.
_EVENTS = """
    CREATE TABLE events AS
    SELECT m.code, m.since, e.* EXCLUDE (user_id) FROM (
        SELECT user_id, time,
            CASE WHEN time - LAG(time) OVER (PARTITION BY user_id ORDER BY time) <= $gap THEN 0 ELSE 1 END
                AS visits,
            json_array_length(items) AS impressions, 0 AS clicks, 0 AS orders, 0.0 AS units, 0.0 AS value
        FROM requests
        UNION ALL
        SELECT user_id, MIN(time), 0, 0, 1, 0, 0.0, 0.0 FROM found
        WHERE kind = 'click' GROUP BY user_id, request_id, item_id
        UNION ALL
        SELECT user_id, time, 0, 0, 0, 1, units, value FROM found WHERE kind = 'order'
    ) AS e JOIN members AS m ON e.user_id = m.user_id"""

_SUMS = ", ".join(f"CAST(COALESCE(SUM({name}), 0) AS DOUBLE) AS {name}" for name in COLUMNS)

_DURING = f"""
    SELECT code, time // $day AS day, {_SUMS} FROM events WHERE time >= since
    GROUP BY code, time // $day ORDER BY day, code"""

_BEFORE = f"""
    SELECT m.code, {_SUMS} FROM members AS m
    LEFT JOIN (SELECT * FROM events WHERE time < since) AS e ON m.code = e.code
    GROUP BY m.code ORDER BY m.code"""

_EXCLUDED = (
    """SELECT COUNT(*) FROM (
        SELECT user_id FROM requests WHERE user_id IS NOT NULL AND time >= $since
        GROUP BY user_id HAVING COUNT(DISTINCT arm) > 1)""",
    "SELECT COUNT(*) FROM requests WHERE user_id IS NULL AND time >= $since",
    "SELECT COUNT(DISTINCT event_id) FROM outcomes WHERE request_id NOT IN (SELECT request_id FROM requests)",
)
