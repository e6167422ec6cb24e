"""How much better each arm does than the one it is compared with, at one look."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from towpath.abtest.cuped import adjusted_ratios
from towpath.abtest.holm import holm
from towpath.abtest.metrics import Metric
from towpath.abtest.sequences import Ratio, Sequence, absolute_lift, p_value, ratio_of, relative_lift
from towpath.abtest.totals import Look
from towpath.stats.estimate import Estimate


@dataclass(frozen=True)
class Lift:
    """One metric of one arm against another.

    `p_value` is always valid and belongs to the intervals; `p_holm` also accounts for the number of arms.
    """

    metric: str
    arm: str
    against: str
    values: tuple[float, float]  # of the arm, and of what it is compared with
    absolute: Estimate
    relative: Estimate
    p_value: float
    p_holm: float


def lifts_at(look: Look, metric: Metric, control: str, sequence: Sequence) -> list[Lift]:
    """The lift of every other arm over `control`; by CUPED where users have a past."""
    ratios = dict(zip(look.arms, _ratios(look, metric), strict=True))
    found = [
        _lift(metric, arm, control, (ratios[arm], ratios[control]), sequence)
        for arm in look.arms
        if arm != control
    ]
    adjusted = holm([lift.p_value for lift in found])
    return [replace(lift, p_holm=p) for lift, p in zip(found, adjusted, strict=True)]


def _ratios(look: Look, metric: Metric) -> list[Ratio]:
    """The metric of each arm."""
    numerator, denominator = metric.numerator(look.totals), metric.denominator(look.totals)
    members = [look.arm_of == place for place in range(len(look.arms))]
    sums = [(numerator[rows], denominator[rows]) for rows in members]
    if look.before is None:
        return [ratio_of(*pair) for pair in sums]
    past = np.asarray(metric.numerator(look.before))
    return adjusted_ratios(sums, [past[rows] for rows in members])


def _lift(metric: Metric, arm: str, against: str, pair: tuple[Ratio, Ratio], sequence: Sequence) -> Lift:
    p = p_value(*pair, sequence)
    values = (pair[0].value, pair[1].value)
    relative = relative_lift(*pair, sequence)
    return Lift(metric.name, arm, against, values, absolute_lift(*pair, sequence), relative, p, p)


def worse(lifts: list[Lift], alpha: float) -> Iterator[Lift]:
    """The lifts that are surely below zero, accounting for their number."""
    for lift, p in zip(lifts, holm([lift.p_value for lift in lifts]), strict=True):
        if p < alpha and lift.absolute.mean < 0:
            yield lift
