"""Choosing the numbers that trade bias against variance, on the log alone.

Two published rules: SLOPE (Su, Srinath and Krishnamurthy 2020) and the bound on the mean squared error of
Su, Dimakopoulou, Krishnamurthy and Dudik (2020).
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from towpath.bandit.estimators import ESTIMATORS, LoggedRows, Scales, harmonic, shrunk, switched
from towpath.errors import unknown_name

Values = NDArray[np.float64]

DELTA = 0.05
RULES = ("slope", "bias-variance")
# Which estimator each number belongs to.
OWNERS = {"clip": "clipped", "tau": "switch-dr", "dros": "dros", "sub_gaussian": "sub-gaussian"}
_CANDIDATES = 20


def tune_scales(rows: LoggedRows, scales: Scales, rule: str = "slope") -> Scales:
    """The scales that the rule chooses on these rows."""
    if rule not in RULES:
        raise unknown_name("rule for --tune", rule, RULES)
    choose = _by_slope if rule == "slope" else _by_bound
    for name in OWNERS:
        scales = scales.with_scale(name, choose(rows, scales, name))
    return scales


def candidates(weights: Values, name: str) -> list[float]:
    """Values worth trying, the one of least bias first: quantiles of the weights for M and tau.

    dros' lambda is their square, at which a weight of that size is halved; sub-gaussian's is their inverse.
    """
    positive = weights[weights > 0]
    found = np.unique(np.quantile(positive, np.linspace(0.5, 1, _CANDIDATES)))[::-1]
    if name == "dros":
        return [float(value**2) for value in (found[0] * 100, *found)]
    if name == "sub_gaussian":
        return [0.0, *(float(min(1.0, 1 / value)) for value in found)]
    return [float(value) for value in found]


def slope(values: Sequence[float], half_widths: Sequence[float]) -> int:
    """Index of the candidate that SLOPE chooses: least bias first, half widths not increasing.

    The last i such that |v_i - v_j| <= h_i + (sqrt(6) - 1) h_j for all j before it: as long as a more biased
    estimate agrees with all less biased ones within their spread, its bias is not the larger part.

    >>> slope([1.0, 1.1, 3.0], [1.0, 0.5, 0.1])
    1
    """
    chosen = 0
    for i in range(1, len(values)):
        near = [
            abs(values[i] - values[j]) <= half_widths[i] + (np.sqrt(6) - 1) * half_widths[j] for j in range(i)
        ]
        if not all(near):
            break
        chosen = i
    return chosen


def _by_slope(rows: LoggedRows, scales: Scales, name: str) -> float:
    tried = candidates(rows.weights, name)
    values, widths = [], []
    for candidate in tried:
        found = ESTIMATORS[OWNERS[name]](rows, scales.with_scale(name, candidate)).linearised()
        values.append(float(found.mean()))
        widths.append(float(2 * found.std(ddof=1) / np.sqrt(len(found))))
    # A wider interval of a more biased estimate is chance; SLOPE wants them not to grow.
    return tried[slope(values, np.minimum.accumulate(widths).tolist())]


def _by_bound(rows: LoggedRows, scales: Scales, name: str) -> float:
    tried = candidates(rows.weights, name)
    bounds = [squared_error_bound(rows, *_changed(rows, name, candidate)) for candidate in tried]
    return tried[int(np.argmin(bounds))]


def _changed(rows: LoggedRows, name: str, candidate: float) -> tuple[Values, Values]:
    """The weights that a candidate makes, and what they are multiplied with."""
    change: Mapping[str, Callable[[Values, float], Values]] = {
        "clip": np.minimum,
        "tau": switched,
        "dros": shrunk,
        "sub_gaussian": harmonic,
    }
    by_model = name in ("tau", "dros")
    return change[name](rows.weights, candidate), rows.residuals if by_model else rows.rewards


def squared_error_bound(rows: LoggedRows, changed: Values, target: Values) -> float:
    """An upper bound on bias^2 plus the variance of the estimate with `changed` weights.

        bias <= |mean((w - w') t)| + sqrt(2 mean(w^2) L / n) + 2 max(w) L / (3 n),   L = log(2 / delta)

    t is r - q for doubly robust estimates and r for the others.
    """
    w, n, length = rows.weights, len(rows), np.log(2 / DELTA)
    bias = abs(float(((w - changed) * target).mean()))
    bias += float(np.sqrt(2 * (w**2).mean() * length / n) + 2 * w.max() * length / (3 * n))
    return bias**2 + float((changed * target).var(ddof=1) / n)
