"""Means with their spread over a few runs, as estimates."""

from collections.abc import Sequence

import numpy as np
from scipy import special

from towpath.stats.estimate import Estimate
from towpath.stats.intervals import LEVEL

DEVIATION = "mean ± one standard deviation between seeds"
# The share of a normal distribution within one standard deviation of its mean.
_WITHIN_ONE = 0.6827


def over_seeds(values: Sequence[float]) -> Estimate:
    """The mean and one standard deviation (divisor n - 1) to either side; of one value nothing but itself.

    >>> over_seeds([1.0, 2.0, 3.0]).high
    3.0
    """
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return mean_and_deviation(float(np.mean(values)), sd, n=len(values))


def mean_and_deviation(mean: float, sd: float | None, *, n: int) -> Estimate:
    """A mean over n seeds with its standard deviation, where it has one."""
    if sd is None:
        return Estimate(mean, mean, mean, n, "one seed, no interval", 0.0)
    return Estimate(mean, mean - sd, mean + sd, n, DEVIATION, _WITHIN_ONE)


def deviation_of(estimate: Estimate) -> float | None:
    """The standard deviation of an estimate of `mean_and_deviation`; None of any other.

    >>> deviation_of(mean_and_deviation(8.06, 0.26, n=10))
    0.26
    """
    # The ends were rounded when they were computed; twelve digits are what is left.
    return float(f"{estimate.width / 2:.12g}") if estimate.how == DEVIATION else None


def t_interval(values: Sequence[float]) -> Estimate:
    """The mean and its 95 % interval by Student's t with n - 1 degrees of freedom.

        mean ± t s / sqrt(n)

    Right where the values are independent and about normal.
    """
    mean, n = float(np.mean(values)), len(values)
    half = float(special.stdtrit(n - 1, (1 + LEVEL) / 2) * np.std(values, ddof=1) / n**0.5)
    return Estimate(mean, mean - half, mean + half, n, "95 % t-interval over seeds", LEVEL)


def scaled(estimate: Estimate, scale: float) -> Estimate:
    """The same in another unit, such as 100 times for per cent.

    >>> scaled(Estimate(0.5, 0.25, 0.75, 9, "by hand"), 100).high
    75.0
    """
    mean, low, high = (scale * part for part in (estimate.mean, estimate.low, estimate.high))
    return Estimate(mean, low, high, estimate.n, estimate.how, estimate.level)
