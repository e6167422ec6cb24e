"""What a row of a log counts as: a positive, or shown (or rated) without being one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from towpath.errors import ConfigError

# Kinds of events that say that an item was shown and nothing more.
SHOWN_EVENTS = ("impression", "impressions", "shown", "show", "exposure", "exposed", "display", "displayed")
_RULE = re.compile(r"\s*(>=|<=|==|=|>|<)\s*([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*")


@dataclass(frozen=True)
class Positive:
    """Which rows are positives, where it is not a column of labels that says so."""

    rule: str | None = None  # on the value, such as ">=4"
    events: tuple[str, ...] = ()  # kinds of events, such as ("cart", "purchase")
    event_weights: Mapping[str, float] = field(default_factory=dict)  # value of a row by its kind of event

    def __post_init__(self) -> None:
        if self.rule is not None:
            rule_sql(self.rule, "value")
        for event, weight in self.event_weights.items():
            if not 0 <= weight < float("inf"):
                raise ConfigError(
                    f"The weight of an event should be 0 or more, but that of {event!r} is {weight:g}."
                )


@dataclass(frozen=True)
class RowCounts:
    """How many rows the file has, and what they count as."""

    rows: int
    positives: int
    rated: bool = False  # what is no positive was rated too low, not just shown

    @property
    def others(self) -> int:
        """Rows that are no positives."""
        return self.rows - self.positives

    def sentence(self) -> str:
        """The line that every verb says first.

        >>> RowCounts(200_000, 14_210).sentence()
        '200,000 rows: 14,210 clicked, 185,790 shown but not clicked'
        >>> RowCounts(5, 5).sentence()
        '5 rows, each a positive (the log does not say what else was shown)'
        """
        if not self.others:
            return f"{self.rows:,} rows, each a positive (the log does not say what else was shown)"
        names = ("positive", "rated but not positive") if self.rated else ("clicked", "shown but not clicked")
        return f"{self.rows:,} rows: {self.positives:,} {names[0]}, {self.others:,} {names[1]}"


def rule_sql(rule: str, column: str) -> str:
    """The SQL condition of a rule such as ">=4" on a column; a missing value does not meet it.

    >>> rule_sql(">= 4", "value")
    'COALESCE(value >= 4.0, FALSE)'
    """
    found = _RULE.fullmatch(rule)
    if found is None:
        raise ConfigError(
            f"--positive takes a comparison with a number, such as '>=4' or '>0', and {rule!r} was given."
        )
    sign = "=" if found[1] == "==" else found[1]
    return f"COALESCE({column} {sign} {float(found[2])!r}, FALSE)"
