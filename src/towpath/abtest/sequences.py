"""Intervals that hold at every look at once, for ratios of sums over users.

The asymptotic confidence sequence of Waudby-Smith et al. (2021): a normal mixture over the mean. Whoever
looks daily and stops when they like what they see is wrong in at most a share alpha of the experiments. A
fixed interval, looked at daily for four weeks, is wrong in more than a quarter of them.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.stats.estimate import Estimate

Floats = NDArray[np.float64]
# A variance from fewer users says too little for any interval.
FEWEST_USERS = 30


@dataclass(frozen=True)
class Sequence:
    """How intervals are made: the error rate, and the number of users at which they are tightest.

    `tightest_at` is fixed before the experiment. Any number is valid; one that is wrong by a factor of a
    hundred costs about a sixth of the width.
    """

    alpha: float = 0.05
    tightest_at: int = 5_000

    def information(self, users: int) -> float:
        """The share r = users * rho^2, rho^2 = (-2 log alpha + log(-2 log alpha) + 1) / tightest_at."""
        spent = -2 * math.log(self.alpha)
        return users * (spent + math.log(spent) + 1) / self.tightest_at

    def multiplier(self, users: int) -> float:
        """By how many standard errors an estimate from so many users may err, at any look.

        c = sqrt((1 + 1/r) (log(1 + r) - 2 log alpha))

        >>> round(Sequence(tightest_at=5_000).multiplier(5_000), 2)
        3.04
        """
        r = self.information(users)
        return math.sqrt((1 + 1 / r) * (math.log1p(r) - 2 * math.log(self.alpha)))

    def p_value(self, z: float, users: int) -> float:
        """The always-valid p-value: the error rate at which the interval just excludes zero.

        p = sqrt(1 + r) exp(-z^2 r / (2 (1 + r))), at most 1
        """
        r = self.information(users)
        return min(1.0, math.exp(0.5 * math.log1p(r) - 0.5 * z * z * r / (1 + r)))


@dataclass(frozen=True)
class Ratio:
    """A ratio of two sums over users, and how far it may be from the truth."""

    value: float
    variance: float
    users: int

    @property
    def usable(self) -> bool:
        """Whether there is enough to make an interval from."""
        return self.users >= FEWEST_USERS and math.isfinite(self.value) and math.isfinite(self.variance)


def ratio_of(numerator: Floats, denominator: Floats) -> Ratio:
    """R = sum(numerator) / sum(denominator) over users (n,), with its variance by the delta method.

    var(R) = var(numerator - R denominator) / (n mean(denominator)^2)

    Users are independent of each other; their visits, impressions and orders are not.
    """
    users, total = len(numerator), float(denominator.sum())
    if users < 2 or total == 0:
        return Ratio(math.nan, math.nan, users)
    value = float(numerator.sum()) / total
    return Ratio(value, float(linearised(numerator, denominator).var(ddof=1)) / users, users)


def linearised(numerator: Floats, denominator: Floats) -> Floats:
    """What each user adds to the error of the ratio: (numerator - R denominator) / mean(denominator)."""
    value = float(numerator.sum()) / float(denominator.sum())
    return (numerator - value * denominator) / float(denominator.mean())


def comparable(treated: Ratio, control: Ratio) -> bool:
    """Whether an interval can be made; not from too few users, nor where nobody has done anything yet."""
    return treated.usable and control.usable and treated.variance + control.variance > 0


def absolute_lift(treated: Ratio, control: Ratio, sequence: Sequence) -> Estimate:
    """The difference treated - control, with an interval that holds at every look."""
    users, how = treated.users + control.users, "confidence sequence, difference"
    value = treated.value - control.value
    if not comparable(treated, control):
        return Estimate(value, -math.inf, math.inf, users, how, 1 - sequence.alpha)
    half = sequence.multiplier(users) * math.sqrt(treated.variance + control.variance)
    return Estimate(value, value - half, value + half, users, how, 1 - sequence.alpha)


def relative_lift(treated: Ratio, control: Ratio, sequence: Sequence) -> Estimate:
    """The ratio treated / control - 1, bounded by all q that the same sequence does not refute (Fieller).

        |T - q C| <= c sqrt(var T + q^2 var C),   q >= 0

    It excludes zero exactly when the interval of the difference does. The upper end is infinite where the
    control itself cannot be told from zero.
    """
    users, how = treated.users + control.users, "confidence sequence, ratio (Fieller)"
    level = 1 - sequence.alpha
    value = treated.value / control.value - 1 if control.value else math.nan
    if not (comparable(treated, control) and control.value):
        return Estimate(value, -math.inf, math.inf, users, how, level)
    c2 = sequence.multiplier(users) ** 2
    low, high = _roots(
        control.value**2 - c2 * control.variance,
        treated.value * control.value,
        treated.value**2 - c2 * treated.variance,
    )
    return Estimate(value, max(low, 0.0) - 1, high - 1, users, how, level)


def _roots(a: float, b: float, c: float) -> tuple[float, float]:
    """The least and the largest q >= 0 with a q^2 - 2 b q + c <= 0; infinite where there is no largest."""
    inside = b * b - a * c
    if a > 0:
        root = math.sqrt(max(inside, 0.0))  # negative by rounding alone: the estimate itself is a solution
        return (b - root) / a, (b + root) / a
    if inside <= 0 or c <= 0:
        return 0.0, math.inf
    # a < 0 < c: every q above the one positive root, and none between it and zero.
    return (b - math.sqrt(inside)) / a if a < 0 else c / (2 * b), math.inf


def p_value(treated: Ratio, control: Ratio, sequence: Sequence) -> float:
    """The always-valid p-value of no difference; one where there is too little to say anything."""
    if not comparable(treated, control):
        return 1.0
    z = (treated.value - control.value) / math.sqrt(treated.variance + control.variance)
    return sequence.p_value(z, treated.users + control.users)
