"""Cleaning in explicit steps, each of which says what it dropped."""

from dataclasses import dataclass
from typing import Literal, get_args

from towpath.data.engine import Engine
from towpath.data.sql import COUNT_EVENTS, Statements
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


class Cleaner:
    """Runs the steps on the table `events` and keeps their report."""

    def __init__(self, connection: Engine, statements: Statements) -> None:
        self.connection = connection
        self.statements = statements
        self.steps = [Step("read", 0, *self._count())]

    def clean(self, cleaning: Cleaning) -> tuple[Step, ...]:
        """The report, one step for each that was asked for, after the events have been cleaned."""
        if {"label", "exposure"} <= set(self.statements.extras):
            self._keep("not shown", self.statements.keep_shown())
        if cleaning.min_rating is not None:
            self._min_rating(cleaning.min_rating)
        if cleaning.repeats != "allow":
            sql = self.statements.keep_one_of_repeats(cleaning.repeats)
            self._keep(f"repeats: {cleaning.repeats}", sql, all_ids_stay=True)
        if cleaning.filter == "k-core":
            self._k_core(cleaning)
        else:
            self._filter_once(cleaning)
        return tuple(self.steps)

    def drop_missing(self, rows: int) -> None:
        """Report rows without a user or an item, which are not among the events."""
        read = self.steps[0]
        self.steps.append(Step("missing ids", rows, read.rows, read.users, read.items))

    def _min_rating(self, least: float) -> None:
        if "value" not in self.statements.extras:
            raise DataError(
                "min_rating needs a column of ratings, but the data have none; name it with --value-col."
            )
        self._keep(f"min_rating {least:g}", self.statements.keep_rated(least))

    def _filter_once(self, cleaning: Cleaning) -> None:
        if cleaning.min_per_item > 1:
            sql = self.statements.keep_counted("item", cleaning.min_per_item, None)
            self._keep(f"min_per_item {cleaning.min_per_item}", sql)
        if cleaning.min_per_user > 1 or cleaning.max_per_user is not None:
            most = "" if cleaning.max_per_user is None else f", max_per_user {cleaning.max_per_user}"
            sql = self.statements.keep_counted("user", cleaning.min_per_user, cleaning.max_per_user)
            self._keep(f"min_per_user {cleaning.min_per_user}{most}", sql)

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

    def _keep(self, name: str, select: str, *, all_ids_stay: bool = False) -> None:
        """Replace `events` by what the statement selects, some events of every user and item or not."""
        self.connection.execute(f"CREATE TABLE kept AS {select}")
        self.connection.execute("DROP TABLE events")
        self.connection.execute("ALTER TABLE kept RENAME TO events")
        before = self.steps[-1]
        rows = self.connection.execute("SELECT COUNT(*) FROM events").fetchall()[0][0]
        # Users and items are counted by grouping all events, so only where their number can have changed.
        same = all_ids_stay or rows == before.rows
        users, items = (before.users, before.items) if same else self._count()[1:]
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

    def _count(self) -> tuple[int, int, int]:
        counts = self.connection.execute(COUNT_EVENTS).fetchone()
        assert counts is not None  # an aggregate without groups always gives one row
        return counts[0], counts[1], counts[2]


def refuse_one_sided(steps: tuple[Step, ...]) -> None:
    """Raise for data of one user or one item only, naming the step that left it so."""
    for one, count in (("user", "users"), ("item", "items")):
        if getattr(steps[-1], count) < 2:
            step = next(step for step in steps if getattr(step, count) < 2)
            raise DataError(
                f"Recommending needs at least two users and two items, but after the step {step.name!r} "
                f"there is one {one} only ({step.rows:,} rows); bring more data or ask for less there."
            )
