"""Cleaning in explicit steps, each of which says what it dropped."""

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from towpath.data.engine import Engine
from towpath.data.sql import COUNT_EVENTS, Side, Statements
from towpath.errors import ConfigError, DataError, unknown_name

Repeats = Literal["first", "last", "allow"]
Filter = Literal["one-pass", "k-core"]
Missing = Literal["refuse", "drop"]


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """What to keep. Steps run in the order of the fields. Where there are labels, positives are counted."""

    missing: Missing = "refuse"  # rows without a user or an item
    min_rating: float | None = None  # drop events with a lower value, or with none
    # Of events with the same user and item keep the first, the last, or all; of impressions the first or last
    # that was clicked, if any was.
    repeats: Repeats = "first"
    min_per_item: int = 1  # drop items with fewer events
    min_per_user: int = 1  # drop users with fewer events
    max_per_user: int | None = None  # drop users with more events (often robots)
    # "one-pass" counts items once and then users once, as the paper's authors do, so that some items may end
    # below their minimum; "k-core" repeats both until nothing more is dropped.
    filter: Filter = "one-pass"

    def __post_init__(self) -> None:
        for kind, value, known in (
            ("missing", self.missing, Missing),
            ("repeats", self.repeats, Repeats),
            ("filter", self.filter, Filter),
        ):
            if value not in get_args(known):
                raise unknown_name(f"way of {kind}", value, get_args(known))
        if min(self.min_per_item, self.min_per_user) < 1:
            raise ConfigError(
                "min_per_item and min_per_user should be at least 1, but "
                f"{self.min_per_item} and {self.min_per_user} came; leave them out to keep everything."
            )
        if self.max_per_user is not None and self.max_per_user < self.min_per_user:
            raise ConfigError(
                "max_per_user should not be below min_per_user, but "
                f"{self.max_per_user} and {self.min_per_user} came."
            )


@dataclass(frozen=True)
class Step:
    """One step of cleaning: what it dropped and what was left after it."""

    name: str
    dropped_rows: int
    rows: int
    users: int
    items: int


class EventTable(Protocol):
    """Encoded events, of which some are kept: a table of an engine, or arrays in memory."""

    def rows(self) -> int:
        """How many events there are."""

    def counts(self) -> tuple[int, int, int]:
        """Events, users and items."""

    def keep_shown(self) -> None:
        """The events that were shown, as far as the log says."""

    def keep_rated(self, least: float, /) -> None:
        """The events whose value is at least this; an event without a value is not."""

    def keep_one_of_repeats(self, which: Literal["first", "last"], /) -> None:
        """One event of each pair of user and item."""

    def keep_counted(self, side: Side, least: int, most: int | None, /) -> None:
        """The events of those users or items that have at least `least` and at most `most` of them."""


class SqlEvents:
    """The table `events` of an engine."""

    def __init__(self, connection: Engine, statements: Statements) -> None:
        self._connection, self._statements = connection, statements

    def rows(self) -> int:
        """How many events there are."""
        return int(self._connection.execute("SELECT COUNT(*) FROM events").fetchall()[0][0])

    def counts(self) -> tuple[int, int, int]:
        """Events, users and items."""
        counts = self._connection.execute(COUNT_EVENTS).fetchone()
        assert counts is not None  # an aggregate without groups always gives one row
        return counts[0], counts[1], counts[2]

    def keep_shown(self) -> None:
        """The events that were shown, as far as the log says."""
        self._keep(self._statements.keep_shown())

    def keep_rated(self, least: float) -> None:
        """The events whose value is at least this; an event without a value is not."""
        self._keep(self._statements.keep_rated(least))

    def keep_one_of_repeats(self, which: Literal["first", "last"]) -> None:
        """One event of each pair of user and item."""
        self._keep(self._statements.keep_one_of_repeats(which))

    def keep_counted(self, side: Side, least: int, most: int | None) -> None:
        """The events of those users or items that have at least `least` and at most `most` of them."""
        self._keep(self._statements.keep_counted(side, least, most))

    def _keep(self, select: str) -> None:
        """Replace `events` by what the statement selects."""
        self._connection.execute(f"CREATE TABLE kept AS {select}")
        self._connection.execute("DROP TABLE events")
        self._connection.execute("ALTER TABLE kept RENAME TO events")


class Cleaner:
    """Runs the steps on a table of events and keeps their report."""

    def __init__(self, events: EventTable, extras: tuple[str, ...], lost: int = 0) -> None:
        """So many rows without a user or an item are lost already: they are not among the events."""
        self.events, self.extras = events, extras
        counts = events.counts()
        self.steps = [Step("read", 0, *counts)] + ([Step("missing ids", lost, *counts)] if lost else [])

    def clean(self, cleaning: Cleaning) -> tuple[Step, ...]:
        """The report, one step for each that was asked for, after the events have been cleaned."""
        if {"label", "exposure"} <= set(self.extras):
            self.events.keep_shown()
            self._report("not shown")
        if cleaning.min_rating is not None:
            self._min_rating(cleaning.min_rating)
        if cleaning.repeats != "allow":
            self.events.keep_one_of_repeats(cleaning.repeats)
            self._report(f"repeats: {cleaning.repeats}", all_ids_stay=True)
        if cleaning.filter == "k-core":
            self._k_core(cleaning)
        else:
            self._filter_once(cleaning)
        return tuple(self.steps)

    def _min_rating(self, least: float) -> None:
        refuse_unrated(self.extras)
        self.events.keep_rated(least)
        self._report(f"min_rating {least:g}")

    def _filter_once(self, cleaning: Cleaning) -> None:
        if cleaning.min_per_item > 1:
            self.events.keep_counted("item", cleaning.min_per_item, None)
            self._report(f"min_per_item {cleaning.min_per_item}")
        if cleaning.min_per_user > 1 or cleaning.max_per_user is not None:
            self.events.keep_counted("user", cleaning.min_per_user, cleaning.max_per_user)
            most = "" if cleaning.max_per_user is None else f", max_per_user {cleaning.max_per_user}"
            self._report(f"min_per_user {cleaning.min_per_user}{most}")

    def _k_core(self, cleaning: Cleaning) -> None:
        """Both filters until neither drops anything, reported as one step."""
        before, rounds = len(self.steps), 0
        start = self.steps[-1]
        while True:
            rounds += 1
            rows = self.steps[-1].rows
            self._filter_once(cleaning)
            if self.steps[-1].rows == rows:
                break
        last = self.steps[-1]
        taking = "1 round" if rounds == 1 else f"{rounds} rounds"
        name = f"k-core: {cleaning.min_per_item} per item, {cleaning.min_per_user} per user ({taking})"
        self.steps[before:] = [Step(name, start.rows - last.rows, last.rows, last.users, last.items)]

    def _report(self, name: str, *, all_ids_stay: bool = False) -> None:
        """Add the step that was just done, which left some events of every user and item or not."""
        before, rows = self.steps[-1], self.events.rows()
        # Users and items are counted by grouping all events, so only where their number can have changed.
        same = all_ids_stay or rows == before.rows
        users, items = (before.users, before.items) if same else self.events.counts()[1:]
        self.steps.append(Step(name, before.rows - rows, rows, users, items))
        self._refuse_too_few()

    def _refuse_too_few(self) -> None:
        """Raise when too little is left to learn from, naming the step that did it."""
        *_, before, step = self.steps
        if step.rows == 0:
            raise DataError(
                f"No rows are left after the step {step.name!r}, which dropped all {before.rows:,} "
                f"of {before.users:,} users and {before.items:,} items; ask for less there."
            )


def refuse_unrated(extras: tuple[str, ...]) -> None:
    """Raise for data without a column of ratings."""
    if "value" not in extras:
        raise DataError(
            "min_rating needs a column of ratings, but the data have none; name it with --value-col."
        )


def refuse_one_sided(steps: tuple[Step, ...]) -> None:
    """Raise for data of one user or one item only, naming the step that left it so."""
    for one, count in (("user", "users"), ("item", "items")):
        if getattr(steps[-1], count) < 2:
            step = next(step for step in steps if getattr(step, count) < 2)
            raise DataError(
                f"Recommending needs at least two users and two items, but after the step {step.name!r} "
                f"there is one {one} only ({step.rows:,} rows); bring more data or ask for less there."
            )
