"""Per-user totals: all that the statistics of an experiment need from its log."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class UserTotals:
    """What users did until some day; arrays (users,) over the users that had come by then."""

    visits: Floats
    impressions: Floats
    clicks: Floats
    orders: Floats
    units: Floats
    value: Floats

    def where(self, keep: NDArray[np.bool_]) -> "UserTotals":
        """The same for some of the users."""
        return UserTotals(*(getattr(self, name)[keep] for name in COLUMNS))

    def __add__(self, other: "UserTotals") -> "UserTotals":
        return UserTotals(*(getattr(self, name) + getattr(other, name) for name in COLUMNS))


COLUMNS = tuple(field.name for field in fields(UserTotals))


@dataclass(frozen=True)
class DailyTotals:
    """What each user did on each day of the experiment.

    users, days: (rows,) codes of the users and the days since 1970, ordered by day. A user belongs to one
    arm. `before` is what users did before the experiment, None where there is nothing of that time.
    """

    arms: tuple[str, ...]
    arm_of: NDArray[np.int64]  # (users,) place in `arms`
    users: NDArray[np.int64]
    days: NDArray[np.int64]
    did: UserTotals  # (rows,)
    before: UserTotals | None = None  # (users,)

    @cached_property
    def calendar(self) -> tuple[int, ...]:
        """The days on which anything happened, in order."""
        return tuple(np.unique(self.days).tolist())

    def looks(self) -> Iterator["Look"]:
        """The experiment as it stood at the end of each day."""
        came = np.zeros(len(self.arm_of), dtype=np.bool_)
        total = UserTotals(*(np.zeros(len(came)) for _ in COLUMNS))
        ends = np.searchsorted(self.days, self.calendar, side="right")
        for start, end, day in zip([0, *ends[:-1]], ends, self.calendar, strict=True):
            users = self.users[start:end]
            came[users] = True
            new = (getattr(self.did, name)[start:end] for name in COLUMNS)
            total += UserTotals(*(np.bincount(users, n, len(came)).astype(np.float64) for n in new))
            before = None if self.before is None else self.before.where(came)
            yield Look(day, self.arms, self.arm_of[came], total.where(came), before)

    def last_look(self) -> "Look":
        """The experiment as it stands now."""
        whole = replace(self, days=np.zeros_like(self.days))
        return replace(next(whole.looks()), day=self.calendar[-1])

    def on_day(self, day: int) -> "Look":
        """What happened on one day alone, among the users that came on it."""
        rows = self.days == day
        one = replace(self, users=self.users[rows], days=self.days[rows], did=self.did.where(rows))
        return next(one.looks())


@dataclass(frozen=True)
class Look:
    """Users' totals at one moment; arrays over the users that had come by then."""

    day: int
    arms: tuple[str, ...]
    arm_of: NDArray[np.int64]  # (users,)
    totals: UserTotals
    before: UserTotals | None

    def counts(self) -> tuple[int, ...]:
        """How many users each arm has."""
        return tuple(np.bincount(self.arm_of, minlength=len(self.arms)).tolist())
