"""What is in a set of events, and what may go wrong with it."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from towpath.data.feature_files import FeatureReport
from towpath.data.interactions import MISSING_TIME, Interactions
from towpath.data.sources import Reading

# Users who have interacted with more than this share of the catalogue are reported: often robots.
LARGE_SHARE = 0.5
QUANTILES = {"least": 0.0, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "most": 1.0}
# Times up to here are seconds since 1970, then milliseconds, microseconds, nanoseconds (until the year 5138).
UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (np.inf, 1e9))
FEW_VALUES = 12


@dataclass(frozen=True)
class Inspection:
    """Counts and shares after cleaning; warnings are sentences."""

    source: str
    rows: int  # of the file, like the next two
    positives: int
    shown_not_clicked: int  # rows that are no positives
    roles: dict[str, str]  # role -> the file's own name of its column
    events: int  # positives after cleaning, which everything below is about
    users: int
    items: int
    density: float  # share of all pairs of user and item that occur
    events_per_user: dict[str, float]
    events_per_item: dict[str, float]
    users_under_three: int  # too short to split
    first_time: str | None
    last_time: str | None
    missing_times: int
    tied_at_the_end: float | None  # share of users whose last two events have the same time
    repeated_pairs: int  # events beyond the first of their user and item
    values: dict[str, float] | None  # share of each value, or quantiles where there are many
    missing_values: int
    features: tuple[FeatureReport, ...]  # what became of feature files, where there are some
    warnings: tuple[str, ...]


def inspect(reading: Reading) -> Inspection:
    """What is in the data that were read."""
    data = reading.interactions
    per_user, per_item = data.histories.lengths, data.item_counts
    pairs = len(np.unique(data.pair_keys()))
    times = data.times[data.times != MISSING_TIME] if data.times is not None else np.empty(0, np.int64)
    timed = len(times) > 0
    given = data.values[~np.isnan(data.values)] if data.values is not None else None
    return Inspection(
        source=reading.source,
        rows=reading.counts.rows,
        positives=reading.counts.positives,
        shown_not_clicked=reading.counts.others,
        roles=dict(reading.roles),
        events=len(data),
        users=data.n_users,
        items=data.n_items,
        density=pairs / (data.n_users * data.n_items),
        events_per_user=_quantiles(per_user),
        events_per_item=_quantiles(per_item),
        users_under_three=int((per_user < 3).sum()),
        first_time=_moment(int(times.min()) if timed else None),
        last_time=_moment(int(times.max()) if timed else None),
        missing_times=len(data) - len(times),
        tied_at_the_end=_tied_at_the_end(data),
        repeated_pairs=len(data) - pairs,
        values=_distribution(given) if given is not None else None,
        missing_values=len(data) - len(given) if given is not None else len(data),
        features=reading.features,
        warnings=tuple(_warnings(reading)),
    )


def _warnings(reading: Reading) -> list[str]:
    data = reading.interactions
    warnings = []
    tied = _tied_at_the_end(data)
    if data.times is None:
        warnings.append("There are no times, so the order is that of the file; a time split is impossible.")
    elif missing := int((data.times == MISSING_TIME).sum()):
        warnings.append(f"{missing:,} events have no time; splits need them dropped or a random split.")
    elif odd := int((data.times < 0).sum()):
        warnings.append(f"{odd:,} events have a time before 1970, which is hardly possible.")
    if tied is not None and tied > 0.1:
        warnings.append(f"{tied:.0%} of users tie at their last time; the row of the file decides there.")
    dropped = {step.name: step.dropped_rows for step in reading.steps}
    repeats = next((n for name, n in dropped.items() if name.startswith("repeats")), None)
    if repeats:
        warnings.append(f"{repeats:,} events repeated a pair of user and item and were dropped.")
    elif repeats is None:
        warnings.append("Repeated pairs are allowed, so a test item may be one seen in training.")
    if greedy := int((data.histories.lengths > LARGE_SHARE * data.n_items).sum()):
        warnings.append(
            f"{greedy:,} users have interacted with more than {LARGE_SHARE:.0%} of the catalogue; "
            "--max-per-user drops them."
        )
    short = int((data.histories.lengths < 3).sum())
    if short:
        warnings.append(f"{short:,} users have fewer than three positives and stay in training.")
    return warnings


def _quantiles(numbers: NDArray[np.int64] | NDArray[np.float32]) -> dict[str, float]:
    found = np.quantile(numbers.astype(np.float64), list(QUANTILES.values()))
    return {name: float(value) for name, value in zip(QUANTILES, found, strict=True)}


def _distribution(values: NDArray[np.float32]) -> dict[str, float]:
    if len(values) == 0:
        return {}
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) > FEW_VALUES:
        return _quantiles(values)
    return {f"{value:g}": float(n / len(values)) for value, n in zip(distinct, counts, strict=True)}


def _tied_at_the_end(data: Interactions) -> float | None:
    """The share of users with two events or more whose last two have the same time."""
    if data.times is None:
        return None
    ends = data.histories.starts[1:][data.histories.lengths >= 2]
    if len(ends) == 0:
        return None
    return float((data.times[ends - 1] == data.times[ends - 2]).mean())


def _moment(time: int | None) -> str | None:
    """A time as a date; the number itself where no unit makes it a date since 1970."""
    if time is None:
        return None
    per_second = next(unit for limit, unit in UNITS if abs(time) < limit)
    try:
        return datetime.fromtimestamp(time / per_second, UTC).isoformat(sep=" ", timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return str(time)
