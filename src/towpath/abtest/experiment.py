"""An experiment read from its log: lifts at every look, the check of the split, a verdict."""

from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import Any

import numpy as np

from towpath.abtest.from_log import Excluded, ExperimentLog
from towpath.abtest.lifts import Lift, lifts_at
from towpath.abtest.metrics import Metric
from towpath.abtest.sequences import Sequence, ratio_of
from towpath.abtest.totals import Look
from towpath.abtest.verdict import verdict_of
from towpath.errors import DataError, unknown_name
from towpath.stats.estimate import Estimate
from towpath.stats.sample_ratio import SplitCheck, check_split


@dataclass(frozen=True)
class Day:
    """One arm at the end of one day: its lift so far with its interval, and that of the day alone.

    The interval of the lift so far holds on all days at once; that of a single day is not given, because
    nothing should be decided by it.
    """

    day: str  # ISO date, UTC
    arm: str
    that_day: float
    so_far: Estimate


@dataclass(frozen=True)
class Experiment:
    """All that is said about an experiment."""

    arms: tuple[str, ...]
    control: str
    users: tuple[int, ...]
    lifts: tuple[Lift, ...]
    days: tuple[Day, ...]  # of the metric that decides
    decides: str
    split: SplitCheck
    excluded: Excluded
    verdict: str
    uses_past: bool

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The experiment as plain numbers and text; infinite ends are left to whoever writes it."""
        return {
            "arms": list(self.arms),
            "users": dict(zip(self.arms, self.users, strict=True)),
            "metrics": [_lift_json(lift) for lift in self.lifts],
            "daily": [
                {"day": one.day, "arm": one.arm, "that_day": one.that_day, "so_far": _triple(one.so_far)}
                for one in self.days
            ],
            "decides": self.decides,
            "srm": {
                "users": dict(zip(self.split.arms, self.split.users, strict=True)),
                "expected": dict(zip(self.split.arms, self.split.expected, strict=True)),
                "e_value": self.split.e_value,
                "p_always_valid": self.split.p_value,
                "mismatch": self.split.mismatch,
            },
            "cuped": self.uses_past,
            "excluded": vars(self.excluded),
            "verdict": self.verdict,
        }


def run_experiment(
    log: ExperimentLog, metrics: Several[Metric], sequence: Sequence, control: str | None = None
) -> Experiment:
    """What the log says about each arm against `control`, by default the arm that was configured first."""
    totals, against = log.totals, control or log.assignment.arms[0]
    if against not in totals.arms:
        raise unknown_name("arm", against, totals.arms)
    if len(totals.arms) < 2 or not len(totals.users):
        raise DataError(
            f"An experiment needs two arms with users, and this log has {len(totals.arms)} with "
            f"{len(totals.arm_of):,} users in all; serve with --arm twice or more and send requests."
        )
    look = totals.last_look()
    decides = next((m for m in metrics if np.any(m.numerator(look.totals))), metrics[0])
    lifts = tuple(lift for metric in metrics for lift in lifts_at(look, metric, against, sequence))
    split = check_split(log.assignment.arms, look.counts(), log.assignment.shares)
    return Experiment(
        arms=totals.arms,
        control=against,
        users=look.counts(),
        lifts=lifts,
        days=tuple(_days(log, decides, against, sequence)),
        decides=decides.name,
        split=split,
        excluded=log.excluded,
        verdict=verdict_of(lifts, decides, split, sequence.alpha),
        uses_past=look.before is not None,
    )


def _days(log: ExperimentLog, metric: Metric, against: str, sequence: Sequence) -> list[Day]:
    """Every other arm at the end of every day."""
    found = []
    for look in log.totals.looks():
        alone = _relative_to(log.totals.on_day(look.day), metric, against)
        date = str(np.datetime64(look.day, "D"))
        found += [
            Day(date, lift.arm, alone[lift.arm], lift.relative)
            for lift in lifts_at(look, metric, against, sequence)
        ]
    return found


def _relative_to(look: Look, metric: Metric, against: str) -> dict[str, float]:
    """The metric of each arm relative to that of one, less one."""
    numerator, denominator = metric.numerator(look.totals), metric.denominator(look.totals)
    members = {arm: look.arm_of == place for place, arm in enumerate(look.arms)}
    values = {arm: ratio_of(numerator[rows], denominator[rows]).value for arm, rows in members.items()}
    base = values[against]
    return {arm: value / base - 1 if base else float("nan") for arm, value in values.items()}


def _lift_json(lift: Lift) -> dict[str, Any]:
    return {
        "metric": lift.metric,
        "arm": lift.arm,
        "against": lift.against,
        "values": list(lift.values),
        "absolute": _triple(lift.absolute),
        "relative": _triple(lift.relative),
        "p_always_valid": lift.p_value,
        "p_holm": lift.p_holm,
    }


def _triple(estimate: Estimate) -> list[float]:
    return [estimate.mean, estimate.low, estimate.high]
