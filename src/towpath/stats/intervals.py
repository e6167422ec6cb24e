"""Intervals for a mean from per-row values, each with what it assumes.

| interval | assumes | what to expect |
|---|---|---|
| normal | many rows, no heavy tail | too short where few rows carry the sum |
| bootstrap | the rows look like the population | as above: a row that was not drawn is not resampled |
| empirical Bernstein | independent rows within known bounds | always holds; wide |
| betting | independent rows, known lower bound | always holds; shorter than Bernstein's |
| gamma | weighted counts of rare events | holds in simulation; short |

How often each holds on logs of rare clicks is measured by `benchmarks/coverage.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special  # not scipy.stats, which takes another 24 MB

from towpath.stats.estimate import Estimate

Values = NDArray[np.float64]

LEVEL = 0.95
RESAMPLES = 2000
# Cells of the resampling matrix held at once: 16 MB.
_COUNTS_AT_ONCE = 2**21
# A bet never risks more than this share of the capital.
TRUNCATION = 0.5


def normal_interval(values: Values, level: float = LEVEL) -> Estimate:
    """Mean and mean ± z s / sqrt(n).

    values: (n,). Right where the central limit has set in; much too short where few rows are large.

    >>> normal_interval(np.array([0.0, 1.0, 0.0, 1.0])).mean
    0.5
    """
    n, mean = len(values), float(np.mean(values))
    half = float(special.ndtri((1 + level) / 2) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    return Estimate(mean, mean - half, mean + half, n, f"{level:.0%} normal interval", level)


@dataclass(frozen=True)
class RatioRows:
    """Rows whose statistic is mean(base) + sum(numerator) / sum(denominator); all (n,)."""

    base: Values
    numerator: Values
    denominator: Values

    @staticmethod
    def of_mean(values: Values) -> "RatioRows":
        """Rows whose statistic is their mean."""
        return RatioRows(np.zeros(len(values)), values, np.ones(len(values)))

    def __len__(self) -> int:
        return len(self.base)

    @property
    def value(self) -> float:
        """The statistic."""
        return float(self.base.mean() + self._ratio)

    @property
    def _ratio(self) -> float:
        return float(self.numerator.sum() / self.denominator.sum())

    def linearised(self) -> Values:
        """Per-row values whose mean is the statistic and whose spread is that of its linear part: (n,).

        base_i + R + (numerator_i - R denominator_i) / mean(denominator), R the ratio (delta method). Where
        the denominator is one everywhere these are base + numerator exactly.
        """
        if np.all(self.denominator == 1):
            return self.base + self.numerator
        ratio = self._ratio
        return self.base + ratio + (self.numerator - ratio * self.denominator) / self.denominator.mean()


def bootstrap_interval(
    rows: RatioRows, rng: np.random.Generator, level: float = LEVEL, resamples: int = RESAMPLES
) -> Estimate:
    """The statistic and the middle `level` of it over resamples of rows; a ratio is taken in every one.

    A resample without any weight is left out. Too short where few rows carry the sum: what is not among
    the rows cannot be resampled.
    """
    return bootstrap_intervals([rows], rng, level, resamples)[0]


def bootstrap_intervals(
    statistics: Sequence[RatioRows],
    rng: np.random.Generator,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> list[Estimate]:
    """The same for several statistics of the same rows, all over the same resamples."""
    n = len(statistics[0])
    columns = np.stack([c for s in statistics for c in (s.base / n, s.numerator, s.denominator)], axis=1)
    step = max(1, _COUNTS_AT_ONCE // n)
    sums = np.concatenate(
        [_resample_counts(min(step, resamples - i), n, rng) @ columns for i in range(0, resamples, step)]
    )
    how = f"{level:.0%} percentile bootstrap interval ({resamples:,} resamples of rows)"
    found = []
    for place, rows in enumerate(statistics):
        base, numerator, denominator = sums[:, 3 * place : 3 * place + 3].T
        real = denominator > 0
        values = base[real] + numerator[real] / denominator[real]
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        found.append(Estimate(rows.value, float(low), float(high), n, how, level))
    return found


def bernstein_interval(values: Values, lower: float, upper: float, level: float = LEVEL) -> Estimate:
    """Mean ± sqrt(2 V L / n) + 7 (upper - lower) L / (3 (n - 1)), L = log(2 / delta), delta = alpha / 2.

    Maurer and Pontil (2009), each side at alpha / 2, V the sample variance. values: (n,), independent and
    within [lower, upper]; a bound read off the same values is not one, and then nothing is guaranteed.
    """
    n, mean = len(values), float(np.mean(values))
    how = f"{level:.0%} empirical Bernstein interval (Maurer and Pontil), values within {_span(lower, upper)}"
    if n < 2:
        return Estimate(mean, lower, upper, n, how, level)
    length = np.log(2 / ((1 - level) / 2))
    half = np.sqrt(2 * np.var(values, ddof=1) * length / n) + 7 * (upper - lower) * length / (3 * (n - 1))
    return Estimate(mean, max(lower, mean - float(half)), min(upper, mean + float(half)), n, how, level)


def betting_lower(values: Values, alpha: float, bets: Values | None = None) -> float:
    """A number that the mean of these values is below with probability at most alpha.

    The smallest m at which a gambler who bets that the mean is above m has not multiplied the capital by
    1 / alpha at any time (Ville's inequality; Waudby-Smith and Ramdas 2024):

        K_t(m) = prod_{i <= t} 1 + min(lambda_i, c / m) (x_i - m),   c = 1/2,
        lambda_i = sqrt(2 log(1 / alpha) / (n s_{i-1}^2)), s^2 the variance of the rows before i.

    values: (n,), independent with one mean, none negative; no upper bound is needed. `bets` are the lambda_i,
    which may be any numbers above zero that were known before their row.
    """
    bets = predictable_bets(values, alpha) if bets is None else bets
    threshold = np.log(1 / alpha)
    low, high = 0.0, float(values.mean())
    if high == 0 or _richest(values, bets, high) >= threshold:
        return high
    for _ in range(60):  # K falls in m, so the place is found by halving
        middle = (low + high) / 2
        low, high = (middle, high) if _richest(values, bets, middle) >= threshold else (low, middle)
    return low


def betting_interval(
    values: Values, lower: float, upper: float, level: float = LEVEL, *, opposite: Values | None = None
) -> Estimate:
    """Mean and the betting bounds, each side at alpha / 2; see `betting_lower`.

    values: (n,) within [lower, upper]. `opposite` holds values (n,), none negative, whose expectation is one
    minus that of `values`: then the upper end is 1 - their lower bound and `upper` is not used. For IPS these
    are w (1 - r), and the price is that the target must be supported by the log, so that E w = 1.
    """
    alpha, n, mean = 1 - level, len(values), float(values.mean())
    low = lower + betting_lower(values - lower, alpha / 2)
    if opposite is not None:
        high, known = 1 - betting_lower(opposite, alpha / 2), "the upper end from w (1 - r)"
    elif np.isfinite(upper):
        # The spread of the mirrored values is that of the values, whose scale is the one of rewards.
        bets = predictable_bets(values - lower, alpha / 2)
        high, known = upper - betting_lower(upper - values, alpha / 2, bets), f"values at most {upper:.4g}"
    else:
        high, known = np.inf, "no upper end, as values have no known bound"
    how = f"{level:.0%} betting interval (Waudby-Smith and Ramdas), {known}"
    return Estimate(mean, low, max(high, low), n, how, level)


def gamma_interval(weights: Values, counts: Values, level: float = LEVEL) -> Estimate:
    """Mean of weights * counts with the gamma interval of Fay and Feuer (1997) for weighted Poisson counts.

        y = sum v_i x_i,  s = sum v_i^2 x_i,  v_i = w_i / n,  v_+ = max v_i
        low  = G(alpha / 2; shape y^2 / s, scale s / y)
        high = G(1 - alpha / 2; shape (y + v_+)^2 / (s + v_+^2), scale (s + v_+^2) / (y + v_+))

    weights: (n,), none negative. counts: (n,), 0 or 1 and rare, so that they are nearly Poisson. One more
    event of the largest weight is allowed for at the upper end, which keeps it honest when no event has been
    seen there. Conservative in simulation; no theorem for weights that are drawn with the rows.
    """
    n, alpha = len(weights), 1 - level
    shares = weights / n
    y, s, most = float(shares @ counts), float(shares**2 @ counts), float(shares.max(initial=0.0))
    low = float(special.gammaincinv(y**2 / s, alpha / 2) * s / y) if y > 0 else 0.0
    y_high, s_high = y + most, s + most**2
    high = float(special.gammaincinv(y_high**2 / s_high, 1 - alpha / 2) * s_high / y_high) if most else 0.0
    return Estimate(y, low, high, n, f"{level:.0%} gamma interval (Fay and Feuer)", level)


def predictable_bets(values: Values, alpha: float) -> Values:
    """How much to bet on each row, from the rows before it alone: (n,).

    Before the first row the mean counts as 1/2 and the variance as 1/4, as of rewards within [0, 1].
    """
    n = len(values)
    before = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(values)) / (before + 1)
    squares = (values - np.concatenate([[0.5], means[:-1]])) ** 2
    variances = np.concatenate([[0.25], ((0.25 + np.cumsum(squares)) / (before + 1))[:-1]])
    return np.sqrt(2 * np.log(1 / alpha) / (n * np.maximum(variances, 1e-300)))


def _richest(values: Values, bets: Values, m: float) -> float:
    """The logarithm of the largest capital that betting on a mean above m had at any time."""
    stakes = np.minimum(bets, TRUNCATION / m) if m > 0 else bets
    return float(np.cumsum(np.log1p(stakes * (values - m))).max())


def _resample_counts(resamples: int, size: int, rng: np.random.Generator) -> Values:
    """How often each of `size` rows is drawn in each of the resamples: (resamples, size)."""
    drawn = rng.integers(size, size=(resamples, size)) + np.arange(resamples)[:, None] * size
    return np.bincount(drawn.ravel(), minlength=resamples * size).reshape(resamples, size).astype(np.float64)


def _span(lower: float, upper: float) -> str:
    return f"[{lower:.4g}, {upper:.4g}]"
