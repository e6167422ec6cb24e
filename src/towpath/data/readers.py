"""Event files to one relation `raw`: user_id, item_id, the extras that are there, and the row of the file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from towpath.data.columns import Columns
from towpath.data.engine import Engine, quote_literal
from towpath.data.layout import File
from towpath.data.meaning import SHOWN_EVENTS, Positive, RowCounts, rule_sql
from towpath.data.numbers import exposure_sql, flag_sql, is_number, number_sql, propensity_sql, refuse_rows
from towpath.data.scan import Source, open_frame, open_source
from towpath.data.times import INTEGERS, UnlikeTimesError, time_expression
from towpath.errors import ConfigError, DataError

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
# Kinds of events that are named in a sentence.
_FEW_EVENTS = 6


@dataclass(frozen=True)
class Raw:
    """What `raw` holds: its source, its extra columns, and for each side the SQL that types its `id`."""

    source: Source
    extras: tuple[str, ...]
    user_id: str
    item_id: str
    counts: RowCounts
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """How the rows are to be read: which columns, which rows are positives, which value means none."""

    columns: Columns
    positive: Positive
    missing_value: float | None = None


def read_raw(connection: Engine, data: Sequence[File] | pa.Table, asked: Asked) -> Raw:
    """The relation `raw` over the files or the data frame."""
    if isinstance(data, pa.Table):
        source = open_frame(connection, data, asked.columns)
    else:
        source = open_source(connection, data, asked.columns)
    return _Reader(connection, source, asked).read()


class _Reader:
    """Turns the columns of `source` into those of `raw`, and notes what it guessed."""

    def __init__(self, connection: Engine, source: Source, asked: Asked) -> None:
        self._connection, self._source, self._asked = connection, source, asked
        described = connection.execute("DESCRIBE source").fetchall()
        self._kinds: Mapping[str, str] = {row[0]: row[1] for row in described}
        self._notes: list[str] = []

    def read(self) -> Raw:
        """The relation and what is known of it."""
        connection, source = self._connection, self._source
        sides = {side: _id(connection, source, side, self._kinds[side]) for side in ("user", "item")}
        extras = self._extras()
        rows = _count(connection, "source")
        row = "INTEGER" if rows < 2**31 else "BIGINT"  # four bytes less for each row that is sorted
        chosen = "".join(f", {sql} AS {extra}" for extra, sql in extras.items())
        connection.execute(
            f"CREATE VIEW raw AS SELECT {sides['user'][0]} AS user_id, {sides['item'][0]} AS item_id"
            f"{chosen}, CAST(file_row AS {row}) AS file_row FROM source"
        )
        positives = _count(connection, "raw WHERE label") if "label" in extras else rows
        counts = RowCounts(rows, positives, rated=self._asked.positive.rule is not None)
        self._refuse_unclear_labels(counts, "label" in extras)
        notes = (*source.notes, *self._notes, *([counts.sentence()] if rows else []))
        if "label" in extras and positives == rows:
            extras.pop("label")  # every row is a positive: nothing was logged that was only shown
        return Raw(source, tuple(extras), sides["user"][1], sides["item"][1], counts, notes)

    def _extras(self) -> dict[str, str]:
        """The SQL of each further column of `raw`."""
        connection, source, kinds = self._connection, self._source, self._kinds
        extras = {}
        if "time" in source.indices:
            extras["event_time"] = _time(connection, source, kinds["time"])
        value = self._value()
        if value is not None:
            extras["value"] = value
        if "propensity" in source.indices:
            extras["propensity"] = propensity_sql(connection, source, kinds["propensity"])
        if "exposure" in source.indices:
            extras["exposure"] = exposure_sql(connection, source, kinds["exposure"])
        label = self._label(value)
        if label is not None:
            extras["label"] = label
            self._refuse_unseen_clicks(label)
        if "position" in source.indices:
            number = number_sql(connection, source, "position", kinds["position"])
            self._refuse_odd_positions(number)
            extras["position"] = f"CAST({number} AS INTEGER)"
        for role in ("request", "policy"):
            if role in source.indices:
                extras[role] = f'CAST("{role}" AS STRING)'
        return extras

    def _refuse_odd_positions(self, number: str) -> None:
        column = self._source.column("position")
        problem = f"The position column {column!r} should hold whole numbers below two billion"
        condition = f"{number} IS NOT NULL AND (isnan({number}) OR abs({number}) > 2e9)"
        advice = "Mend those rows or name another column."
        refuse_rows(self._connection, self._source, "position", condition, problem, advice)

    def _value(self) -> str | None:
        """The SQL of the value: its column, or the weight of the kind of event."""
        weights = self._asked.positive.event_weights
        if weights:
            self._refuse_no_events("--event-weight")
            cases = " ".join(f"WHEN {quote_literal(event)} THEN {w!r}" for event, w in weights.items())
            return f"CAST(CASE {_EVENT} {cases} ELSE 1.0 END AS FLOAT)"
        if "value" not in self._source.indices:
            return None
        value = number_sql(self._connection, self._source, "value", self._kinds["value"])
        missing = self._asked.missing_value
        return value if missing is None else f"NULLIF({value}, {missing!r})"

    def _label(self, value: str | None) -> str | None:
        """The SQL of being a positive; None where every row is one."""
        positive = self._asked.positive
        has_label = "label" in self._source.indices
        given = [
            name
            for name, there in (
                ("--label-col", bool(self._asked.columns.label)),
                ("--positive", positive.rule is not None),
                ("--positive-events", bool(positive.events)),
            )
            if there
        ]
        if len(given) > 1:
            raise ConfigError(f"Only one of {' and '.join(given)} can say what a positive is; leave one out.")
        if positive.rule is not None:
            return self._by_rule(positive.rule, value)
        if positive.events:
            return self._by_events(positive.events)
        if has_label:
            return self._by_column()
        return self._by_guess(value)

    def _by_rule(self, rule: str, value: str | None) -> str:
        if value is None:
            raise DataError(
                f"--positive {rule} needs a column of ratings or counts, but the data have none; name it "
                "with --value-col."
            )
        return rule_sql(rule, value)

    def _by_events(self, events: Sequence[str]) -> str:
        self._refuse_no_events("--positive-events")
        there = self._events()
        for event in events:
            if event not in there:
                raise DataError(
                    f"There is no event {event!r} in column {self._source.column('event')!r}; events there: "
                    f"{_listed(there)}."
                )
        return f"COALESCE({_EVENT} IN ({', '.join(map(quote_literal, events))}), FALSE)"

    def _by_column(self) -> str | None:
        """The label column, if it is one; a guess that holds something else is dropped with a note."""
        try:
            return _label(self._connection, self._source, self._kinds["label"])
        except DataError:
            if self._asked.columns.label:
                raise
            self._notes.append(f"column {self._source.column('label')!r} is no label: it is not 0 or 1")
            return self._by_guess(None)

    def _by_guess(self, value: str | None) -> str | None:
        """What follows from the kinds of events, if they say that something was only shown."""
        if "event" in self._source.indices:
            there = self._events()
            shown = [event for event in there if event.lower() in SHOWN_EVENTS]
            if shown and len(shown) < len(there):
                self._notes.append(
                    f"events {_listed(shown)} count as shown, the others as positives (guessed)"
                )
                return f"COALESCE({_EVENT} NOT IN ({', '.join(map(quote_literal, shown))}), FALSE)"
            self._notes.append(
                f"all events count as positives ({_listed(there)}); --positive-events chooses some of them"
            )
        elif value is not None:
            self._notes.append("all rated rows count as positives; a rule such as --positive '>=4' chooses")
        return None

    def _events(self) -> list[str]:
        """The kinds of events, the most frequent first."""
        statement = (
            f"SELECT {_EVENT} FROM source WHERE event IS NOT NULL GROUP BY 1 ORDER BY COUNT(*) DESC, 1"
        )
        return [row[0] for row in self._connection.execute(statement).fetchall()]

    def _refuse_no_events(self, option: str) -> None:
        if "event" not in self._source.indices:
            raise DataError(f"{option} needs a column of kinds of events; name it with --event-col.")

    def _refuse_unseen_clicks(self, label: str) -> None:
        if "exposure" not in self._source.indices:
            return
        problem = "What was not shown cannot have been clicked, so exposure should be 1 wherever the label is"
        condition = f"{label} AND NOT {flag_sql(self._kinds['exposure'])}"
        refuse_rows(
            self._connection, self._source, "exposure", condition, problem, "Mend one of the two columns."
        )

    def _refuse_unclear_labels(self, counts: RowCounts, labelled: bool) -> None:
        if not labelled or not counts.rows:
            return
        what = "The label" if "label" in self._source.indices else "The rule for positives"
        if counts.positives == 0:
            raise DataError(
                f"{what} should be true of some rows, but it is true of none of {counts.rows:,}; a log "
                "without positives teaches nothing. Name another column or rule."
            )
        if counts.others == 0 and self._asked.columns.label:
            raise DataError(
                f"{what} should tell positives from what was only shown, but it is 1 in all {counts.rows:,} "
                "rows; leave --label-col out to read them as a log of positives."
            )


_EVENT = 'CAST("event" AS STRING)'


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FEW_EVENTS:,} more" if len(names) > _FEW_EVENTS else ""
    return ", ".join(map(repr, names[:_FEW_EVENTS])) + more


def _count(connection: Engine, relation: str) -> int:
    return int(connection.execute(f"SELECT COUNT(*) FROM {relation}").fetchall()[0][0])


def _label(connection: Engine, source: Source, kind: str) -> str:
    """SQL for a label: true or false, or a number that is 0 where the row is no positive."""
    if kind == "BOOLEAN":
        return 'COALESCE("label", FALSE)'
    word = 'LOWER(TRIM("label"))'
    number = _NUMBER_OF_WORD.format(x=word) if kind == "VARCHAR" else 'TRY_CAST("label" AS DOUBLE)'
    problem = f"A label (column {source.column('label')!r}) should be 0 or 1"
    if kind != "VARCHAR" and not is_number(kind):
        raise DataError(f"{problem}, but in {source.label} it holds {kind}; name another column.")
    condition = f'"label" IS NULL OR {number} IS NULL OR {number} NOT IN (0, 1)'
    refuse_rows(connection, source, "label", condition, problem, _OTHER_LABELS)
    return f"({number} = 1)"


_NUMBER_OF_WORD = "CASE {x} WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE number_in({x}) END"
_OTHER_LABELS = "Mend those rows; counts and ratings are values: --value-col with --positive '>0', say."


def refuse_missing_ids(connection: Engine, source: Source) -> None:
    """Raise for events without a user or an item."""
    for side in ("user", "item"):
        problem = (
            f"Every event needs {'an' if side == 'item' else 'a'} {side} (column {source.column(side)!r})"
        )
        refuse_rows(
            connection,
            source,
            side,
            f'"{side}" IS NULL',
            problem,
            "Fill them in, or leave those rows out with --missing drop.",
        )


def _id(connection: Engine, source: Source, side: str, kind: str) -> tuple[str, str]:
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
            f"WHERE NOT full_match(id, '{CANONICAL_INTEGER}')"
        ).fetchone()
        return column, "id" if other and other[0] else "CAST(id AS BIGINT)"
    return column, "id"


def _json_id(connection: Engine, source: Source, side: str) -> str:
    """SQL for an id from JSON: text stays text and numbers stay numbers."""
    found = connection.execute(f'SELECT DISTINCT json_kind("{side}") FROM source').fetchall()
    kinds = {row[0] for row in found} - {None, "NULL"}
    if kinds <= {"VARCHAR"}:
        return f'json_text("{side}")'
    if kinds <= {"BIGINT", "UBIGINT"}:
        return f'CAST("{side}" AS BIGINT)'
    if kinds <= {"BIGINT", "UBIGINT", "DOUBLE"}:
        return f'CAST("{side}" AS DOUBLE)'
    raise DataError(
        f"The {side} ids of {source.label} should be all text or all numbers, but column "
        f"{source.column(side)!r} mixes {', '.join(sorted(kinds)).lower()}; write them in one way."
    )


def _time(connection: Engine, source: Source, kind: str) -> str:
    try:
        return time_expression(connection, '"time"', kind)
    except UnlikeTimesError as error:
        problem = f"The times of column {source.column('time')!r} should all be {error.expected}"
        condition = f'"time" IS NOT NULL AND {error.condition}'
        refuse_rows(connection, source, "time", condition, problem, "Write all times in one form.")
        raise
