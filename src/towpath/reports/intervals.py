"""Means over users with their intervals."""

import numpy as np
from numpy.typing import NDArray

from towpath.stats.estimate import Estimate
from towpath.stats.spread import scaled


def mean_interval(values: NDArray[np.float64], scale: float = 1.0) -> Estimate:
    """The mean of values (n,) and its 95 % interval by the normal approximation, all times the scale.

        mean ± 1.96 sd / sqrt(n)

    Of a single value nothing is known but itself.

    >>> mean_interval(np.array([0.0, 1.0, 0.0, 1.0]), scale=100).mean
    50.0
    """
    mean = float(values.mean())
    half = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    how = "95 % normal interval over users"
    return scaled(Estimate(mean, mean - half, mean + half, len(values), how), scale)
