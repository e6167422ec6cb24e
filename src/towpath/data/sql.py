"""All SQL of encoding, cleaning and splitting, and what engines write differently.

Standard SQL only (window functions, no QUALIFY), so that DuckDB and Spark run the same text. What they have
no common word for is a function of FUNCTIONS, which every engine is taught first.

Tables: `raw` (user_id, item_id, file_row and the extras), `user_ids` and `item_ids` (id, raw_id, code),
`events` (user_code, item_code, file_row and the extras). Extras are those of EXTRAS that the data have; a
missing time is NULL and sorts first. Where there is a label, only positives count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Side = Literal["user", "item"]
NO_POLICY = -1  # the code of a row that names no policy
RANDOM_POLICY = -2  # that of a row whose policy is called `random`: shown by chance
EXTRAS = ("event_time", "value", "propensity", "exposure", "label", "position", "request", "policy")
TRAIN, VALIDATION, TEST = 0, 1, 2
# Fewer events than this cannot give one to each part.
SHORTEST = 3


@dataclass(frozen=True)
class Function:
    """A function for which engines have different words.

    Where the two would not agree, Spark's gives NULL, which readers refuse: never another value.
    """

    name: str
    parameters: tuple[str, ...]  # with the types that Spark wants to know
    returns: str
    duckdb: str
    spark: str

    def in_duckdb(self) -> str:
        """The statement that makes it in DuckDB."""
        names = ", ".join(parameter.split()[0] for parameter in self.parameters)
        return f"CREATE MACRO {self.name}({names}) AS {self.duckdb}"

    def in_spark(self) -> str:
        """The statement that makes it in Spark."""
        parameters = ", ".join(self.parameters)
        return (
            f"CREATE OR REPLACE TEMPORARY FUNCTION {self.name}({parameters}) RETURNS {self.returns} "
            f"RETURN {self.spark}"
        )


_TEXT = ("x STRING",)
_WEEKDAY = "(?i)(mon|tue|wed|thu|fri|sat|sun) .*"
_ISO = (
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"([ T][0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)
_DECIMAL = r"(?i)\s*([+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?|nan|[+-]?inf(inity)?)\s*"
FUNCTIONS = (
    Function(
        "full_match",
        ("x STRING", "pattern STRING"),
        "BOOLEAN",
        "regexp_full_match(x, pattern)",
        r"x RLIKE ('^(?:' || pattern || ')\z')",
    ),
    # Times are microseconds since 1970.
    Function("micros", ("x TIMESTAMP",), "BIGINT", "epoch_us(x)", "unix_micros(x)"),
    Function(
        "day_micros",
        _TEXT,
        "BIGINT",
        "epoch_us(try_strptime(x, '%Y%m%d'))",
        "unix_micros(try_to_timestamp(x, 'yyyyMMdd'))",
    ),
    Function(
        "iso_micros",
        _TEXT,
        "BIGINT",
        "epoch_us(TRY_CAST(x AS TIMESTAMPTZ))",
        f"CASE WHEN full_match(x, '{_ISO}') THEN unix_micros(TRY_CAST(x AS TIMESTAMP)) END",
    ),
    Function(
        "weekday_micros",
        _TEXT,
        "BIGINT",
        "epoch_us(try_strptime(x, '%a %b %d %H:%M:%S %z %Y'))",
        f"CASE WHEN full_match(x, '{_WEEKDAY}') "
        "THEN unix_micros(try_to_timestamp(SUBSTRING(x, 5), 'MMM d H:m:s Z yyyy')) END",
    ),
    Function(
        "number_in",
        _TEXT,
        "DOUBLE",
        "TRY_CAST(x AS DOUBLE)",
        f"CASE WHEN full_match(x, '{_DECIMAL}') THEN TRY_CAST(x AS DOUBLE) END",
    ),
    Function(
        "flag_in",
        _TEXT,
        "BOOLEAN",
        "TRY_CAST(x AS BOOLEAN)",
        "CASE WHEN x = TRIM(x) THEN TRY_CAST(x AS BOOLEAN) END",
    ),
    # An id from JSON; Spark's scan gives text with a quote in front and the rest as it is written.
    Function(
        "json_kind",
        _TEXT,
        "STRING",
        "json_type(x)",
        """CASE WHEN x LIKE '"%' THEN 'VARCHAR' WHEN full_match(x, '-?[0-9]+') THEN 'BIGINT' """
        f"""WHEN full_match(x, '{_DECIMAL}') THEN 'DOUBLE' WHEN x IN ('true', 'false') THEN 'BOOLEAN' """
        """WHEN x LIKE '[%' THEN 'ARRAY' WHEN x IS NOT NULL THEN 'OBJECT' END""",
    ),
    Function("json_text", _TEXT, "STRING", "(x ->> '$')", "SUBSTRING(x, 2)"),
)


def distinct_ids(side: Side, id_text: str = "id") -> str:
    """The ids of one side in their order; numbered, they are the table of ids."""
    return f"""
        SELECT {id_text} AS id, id AS raw_id
        FROM (SELECT DISTINCT {side}_id AS id FROM raw) AS seen
        WHERE id IS NOT NULL
        ORDER BY {id_text}"""


# Extras that are text and become codes. A row without a request is a request of its own.
_NAMES = {
    "request": "COALESCE(request, 'row ' || CAST(file_row AS STRING))",
    "policy": "COALESCE(policy, '')",
}
NAMED = tuple(_NAMES)

COUNT_EVENTS = """
    SELECT
        (SELECT COUNT(*) FROM events),
        (SELECT COUNT(*) FROM (SELECT user_code FROM events GROUP BY user_code) AS u),
        (SELECT COUNT(*) FROM (SELECT item_code FROM events GROUP BY item_code) AS i)"""


_CODES = "u.code AS user_code, i.code AS item_code"
_ENCODED = """
    FROM raw
    JOIN user_ids AS u ON raw.user_id = u.raw_id
    JOIN item_ids AS i ON raw.item_id = i.raw_id"""


@dataclass(frozen=True)
class Statements:
    """The statements for tables with these extra columns."""

    extras: tuple[str, ...]

    @property
    def columns(self) -> str:
        """The columns of `events`."""
        return ", ".join(("user_code", "item_code", *self.extras, "file_row"))

    @property
    def oldest_first(self) -> str:
        """The order within a user: by time, then by row of the file."""
        return "event_time ASC NULLS FIRST, file_row ASC" if "event_time" in self.extras else "file_row ASC"

    @property
    def latest_first(self) -> str:
        """The same order backwards."""
        return "event_time DESC NULLS LAST, file_row DESC" if "event_time" in self.extras else "file_row DESC"

    def encode(self) -> str:
        """`events`: raw rows with codes in place of ids."""
        extras = "".join(f"raw.{extra}, " for extra in self.extras)
        return f"CREATE TABLE events AS SELECT {_CODES}, {extras}raw.file_row {_ENCODED}"

    def encoded(self, missing_time: int, least: float | None) -> str:
        """The same rows without NULL, in any order; `rated` says whether the value is at least this."""
        extras = "".join(
            f"COALESCE(raw.{e}, {missing}) AS {e}, " for e, missing in self._missing(missing_time)
        )
        rated = "" if least is None else f"COALESCE(raw.value >= {least!r}, FALSE) AS rated, "
        return f"SELECT {_CODES}, {extras}{rated}raw.file_row {_ENCODED}"

    def _missing(self, time: int) -> list[tuple[str, str]]:
        """Each extra that is no name, and what stands for NULL."""
        missing = {"event_time": f"CAST('{time}' AS BIGINT)", "value": "CAST('NaN' AS FLOAT)"}
        missing |= {"propensity": missing["value"], "exposure": "FALSE", "label": "FALSE", "position": "0"}
        return [(extra, missing[extra]) for extra in self.extras if extra in missing]

    def keep_rated(self, least: float) -> str:
        """The events whose value is at least this; an event without a value is not."""
        return f"SELECT {self.columns} FROM events WHERE value >= {least!r}"

    def keep_shown(self) -> str:
        """The events that were shown, as far as the log says."""
        return f"SELECT {self.columns} FROM events WHERE exposure OR label"

    def keep_one_of_repeats(self, which: Literal["first", "last"]) -> str:
        """One event of each pair of user and item."""
        order = self.oldest_first if which == "first" else self.latest_first
        if "label" in self.extras:
            order = f"CASE WHEN label THEN 0 ELSE 1 END, {order}"  # a click is never lost to a showing
        return f"""
            SELECT {self.columns} FROM (
                SELECT {self.columns}, ROW_NUMBER() OVER (
                    PARTITION BY user_code, item_code ORDER BY {order}
                ) AS place
                FROM events
            ) AS numbered
            WHERE place = 1"""

    def keep_counted(self, side: Side, least: int, most: int | None) -> str:
        """The events of those users or items that have at least `least` and at most `most` of them."""
        columns = ", ".join(f"events.{column.strip()}" for column in self.columns.split(","))
        count = "SUM(CASE WHEN label THEN 1 ELSE 0 END)" if "label" in self.extras else "COUNT(*)"
        ceiling = f" AND {count} <= {most}" if most is not None else ""
        return f"""
            SELECT {columns} FROM events
            JOIN (
                SELECT {side}_code AS code FROM events
                GROUP BY {side}_code HAVING {count} >= {least}{ceiling}
            ) AS kept ON events.{side}_code = kept.code"""

    def in_order(self, missing_time: int) -> str:
        """The events by (user, time, row) with dense codes and without NULL."""
        missing = dict(self._missing(missing_time))
        codes = {e: f"{e}_names.code" for e in _NAMES}
        codes["policy"] = (
            f"CASE WHEN policy_names.name = '' THEN {NO_POLICY} "
            f"WHEN LOWER(policy_names.name) = 'random' THEN {RANDOM_POLICY} ELSE policy_names.code END"
        )
        extras = "".join(
            f", {codes[e]} AS {e}" if e in codes else f", COALESCE({e}, {missing[e]}) AS {e}"
            for e in self.extras
        )
        names = "".join(
            f"\n            JOIN {e}_names ON {_NAMES[e]} = {e}_names.name"
            for e in self.extras
            if e in _NAMES
        )
        return f"""
            SELECT u.code AS user_code, i.code AS item_code{extras}
            FROM events
            JOIN kept_users AS u ON events.user_code = u.old_code
            JOIN kept_items AS i ON events.item_code = i.old_code{names}
            ORDER BY u.code, {self.oldest_first}"""


def kept_codes(side: Side) -> str:
    """The codes that are left after cleaning in their order; numbered, they are dense again."""
    return f"SELECT DISTINCT {side}_code AS old_code FROM events ORDER BY old_code"


def distinct_names(extra: str) -> str:
    """The names of requests or policies in their order; numbered, they are codes."""
    return f"SELECT DISTINCT {_NAMES[extra]} AS name FROM events ORDER BY name"


def kept_ids(side: Side) -> str:
    """The ids that are left after cleaning, in the order of their codes."""
    return f"""
        SELECT ids.id FROM {side}_ids AS ids
        JOIN kept_{side}s AS kept ON ids.code = kept.old_code
        ORDER BY kept.code"""


# The splits read `ordered`: the events after `in_order`, numbered by `place` from 0. Users with fewer than
# SHORTEST events stay in training.
_LENGTHS = "SELECT user_code, COUNT(*) AS events, MAX(place) AS last_place FROM ordered GROUP BY user_code"

LEAVE_LAST_TWO = f"""
    SELECT place, CASE
        WHEN events < {SHORTEST} THEN {TRAIN}
        WHEN place = last_place THEN {TEST}
        WHEN place = last_place - 1 THEN {VALIDATION}
        ELSE {TRAIN} END AS part
    FROM ordered JOIN ({_LENGTHS}) AS lengths ON ordered.user_code = lengths.user_code"""

# The same for a log of impressions: `ordered` then has `positive` and `request` too, and a request with a
# positive is what is left out. What was shown in between belongs to the part that it follows.
_POSITIVE_LENGTHS = """
    SELECT user_code, SUM(CASE WHEN positive THEN 1 ELSE 0 END) AS events FROM ordered GROUP BY user_code"""
_REQUESTS = """
    SELECT user_code, request, MIN(place) AS first_place,
        MAX(CASE WHEN positive THEN 1 ELSE 0 END) AS positive
    FROM ordered GROUP BY user_code, request"""
_LAST_REQUESTS = f"""
    SELECT user_code, first_place, COUNT(*) OVER (PARTITION BY user_code) AS requests,
        ROW_NUMBER() OVER (PARTITION BY user_code ORDER BY first_place DESC) AS nth
    FROM ({_REQUESTS}) AS requests WHERE positive = 1"""
LEAVE_LAST_TWO_POSITIVES = f"""
    SELECT place, CASE
        WHEN units.first_place >= test_from THEN {TEST}
        WHEN units.first_place >= validation_from THEN {VALIDATION}
        ELSE {TRAIN} END AS part
    FROM ordered
    JOIN ({_REQUESTS}) AS units ON ordered.user_code = units.user_code AND ordered.request = units.request
    LEFT JOIN (
        SELECT user_code, MAX(CASE WHEN nth = 1 THEN first_place END) AS test_from,
            MAX(CASE WHEN nth = 2 THEN first_place END) AS validation_from
        FROM ({_LAST_REQUESTS}) AS last_requests WHERE requests >= {SHORTEST} GROUP BY user_code
    ) AS cuts ON ordered.user_code = cuts.user_code"""

# How many events there were before each moment: cuts fall between moments, never within one.
EVENTS_BEFORE = """
    SELECT event_time, SUM(events) OVER (ORDER BY event_time) - events AS before
    FROM (SELECT event_time, COUNT(*) AS events FROM ordered GROUP BY event_time) AS moments"""


def first_moment_after(events: int) -> str:
    """The first moment that has at least this many events before it; NULL if none has."""
    return f"SELECT MIN(event_time) FROM ({EVENTS_BEFORE}) AS counted WHERE before >= {events}"


def looked_at(extras: Sequence[str], draws: bool) -> str:
    """The view `ordered` of the columns of `placed` that a split looks at; draws are one a request or row."""
    unit = "request" if "request" in extras else "place"
    columns = ["place", "user_code"] + ["event_time"] * ("event_time" in extras)
    labels = ["label AS positive", f"{unit} AS request"] if "label" in extras else []
    joined = f" JOIN draws ON placed.{unit} = draws.unit" if draws else ""
    chosen = ", ".join([*columns, *labels, *(["draw"] if draws else [])])
    return f"CREATE VIEW ordered AS SELECT {chosen} FROM placed{joined}"


def rows_of_part(part: int, columns: Mapping[str, tuple[str, str]]) -> str:
    """The rows of one part, each column under the name and of the type that it is stored as."""
    chosen = ", ".join(f"CAST(placed.{c} AS {kind}) AS {name}" for c, (name, kind) in columns.items())
    return f"""
        SELECT {chosen} FROM placed JOIN parts ON placed.place = parts.place
        WHERE parts.part = {part} ORDER BY placed.place"""


MISSING_TIMES = "SELECT COUNT(*), MIN(place) FROM placed WHERE event_time = CAST('{missing}' AS BIGINT)"


def parts_by_threshold(
    column: str, validation_from: float, test_from: float, *, labelled: bool = False
) -> str:
    """The part of each place: by whether its column has reached the one threshold, the other, or none."""
    lengths = _POSITIVE_LENGTHS if labelled else _LENGTHS
    return f"""
        SELECT place, CASE
            WHEN events < {SHORTEST} THEN {TRAIN}
            WHEN {column} >= {test_from!r} THEN {TEST}
            WHEN {column} >= {validation_from!r} THEN {VALIDATION}
            ELSE {TRAIN} END AS part
        FROM ordered JOIN ({lengths}) AS lengths ON ordered.user_code = lengths.user_code"""
