"""What another policy would have earned, as pure functions of per-row weights, rewards and predictions.

A logged row: context x, action a, position k, reward r in [0, 1], propensity p of what was shown. The target
is pi, and w = pi(a | x, k) / p. Predictions: q of the logged row's reward, and `expected`, which is
sum_a pi(a | x, k) q(x, a, k). Every estimator keeps its per-row values (`RatioRows`); means are taken at the
end, and intervals are made from the rows.

| name | value | biased |
|---|---|---|
| ips | mean(w r) | no |
| clipped | mean(min(w, M) r) | down |
| snips | sum(w r) / sum(w) | vanishing |
| dm | mean(expected) | by the model's error |
| dr | dm + mean(w (r - q)) | no, if q was not fitted on the row |
| sndr | dm + sum(w (r - q)) / sum(w) | vanishing |
| switch-dr | dm + mean(w 1[w <= tau] (r - q)) | by the model's error where w > tau |
| dros | dm + mean(lam w / (w^2 + lam) (r - q)) | by the model's error where w is large |
| sub-gaussian | mean(w / (1 - lam + lam w) r) | down |
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from towpath.stats.intervals import RatioRows

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Scales:
    """The numbers that trade bias against variance; fixed ones unless they are tuned on the log."""

    clip: float = 10.0  # M of clipped
    tau: float = 10.0  # of switch-dr
    dros: float = 100.0  # lambda of dros
    sub_gaussian: float = 0.01  # lambda of sub-gaussian, 0 is ips

    def with_scale(self, name: str, value: float) -> "Scales":
        """The same but for one number."""
        return replace(self, **{name: value})


@dataclass(frozen=True)
class LoggedRows:
    """What estimators look at; all (n,)."""

    weights: Values  # w = pi / p
    rewards: Values  # r in [0, 1]
    predicted: Values  # q of what was shown
    expected: Values  # sum over actions of pi q

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def residuals(self) -> Values:
        """What the reward model missed: r - q."""
        return self.rewards - self.predicted


def ips(rows: LoggedRows, scales: Scales) -> RatioRows:
    """Inverse propensity scoring: mean(w r)."""
    return _plain(rows.weights * rows.rewards)


def clipped(rows: LoggedRows, scales: Scales) -> RatioRows:
    """IPS with weights cut at M: mean(min(w, M) r)."""
    return _plain(np.minimum(rows.weights, scales.clip) * rows.rewards)


def snips(rows: LoggedRows, scales: Scales) -> RatioRows:
    """Self-normalised IPS: sum(w r) / sum(w)."""
    return RatioRows(np.zeros(len(rows)), rows.weights * rows.rewards, rows.weights)


def dm(rows: LoggedRows, scales: Scales) -> RatioRows:
    """Direct method, the reward model alone: mean(sum_a pi q)."""
    return _plain(np.zeros(len(rows)), rows.expected)


def dr(rows: LoggedRows, scales: Scales) -> RatioRows:
    """Doubly robust: dm + mean(w (r - q))."""
    return _plain(rows.weights * rows.residuals, rows.expected)


def sndr(rows: LoggedRows, scales: Scales) -> RatioRows:
    """Self-normalised doubly robust: dm + sum(w (r - q)) / sum(w)."""
    return RatioRows(rows.expected, rows.weights * rows.residuals, rows.weights)


def switch_dr(rows: LoggedRows, scales: Scales) -> RatioRows:
    """Doubly robust where w <= tau, the reward model alone elsewhere (Wang et al. 2017)."""
    return _plain(switched(rows.weights, scales.tau) * rows.residuals, rows.expected)


def dros(rows: LoggedRows, scales: Scales) -> RatioRows:
    """Doubly robust with optimistic shrinkage of the weights (Su et al. 2020)."""
    return _plain(shrunk(rows.weights, scales.dros) * rows.residuals, rows.expected)


def sub_gaussian(rows: LoggedRows, scales: Scales) -> RatioRows:
    """IPS with weights of sub-Gaussian tails (Metelli et al. 2021)."""
    return _plain(harmonic(rows.weights, scales.sub_gaussian) * rows.rewards)


def switched(weights: Values, tau: float) -> Values:
    """Weights w where w <= tau, else zero."""
    return np.where(weights <= tau, weights, 0.0)


def shrunk(weights: Values, lam: float) -> Values:
    """Weights lam w / (w^2 + lam), at most sqrt(lam) / 2.

    >>> shrunk(np.array([0.0, 10.0]), 100.0)
    array([0., 5.])
    """
    return lam * weights / (weights**2 + lam)


def harmonic(weights: Values, lam: float) -> Values:
    """Weights w / (1 - lam + lam w), at most 1 / lam.

    >>> harmonic(np.array([0.0, 1.0, 3.0]), 0.5)
    array([0. , 1. , 1.5])
    """
    return weights / (1 - lam + lam * weights)


ESTIMATORS: Mapping[str, Callable[[LoggedRows, Scales], RatioRows]] = {
    "ips": ips,
    "clipped": clipped,
    "snips": snips,
    "dm": dm,
    "dr": dr,
    "sndr": sndr,
    "switch-dr": switch_dr,
    "dros": dros,
    "sub-gaussian": sub_gaussian,
}


def effective_sample_size(weights: Values) -> float:
    """(sum w)^2 / sum w^2: how many rows of equal weight would know as much.

    >>> effective_sample_size(np.array([1.0, 1.0, 0.0, 0.0]))
    2.0
    """
    squares = float(weights @ weights)
    return float(weights.sum() ** 2 / squares) if squares > 0 else 0.0


def _plain(values: Values, base: Values | None = None) -> RatioRows:
    """Rows whose statistic is a plain mean."""
    return RatioRows(np.zeros(len(values)) if base is None else base, values, np.ones(len(values)))
