"""The loops of a game of margins that numba compiles, once, and keeps on disk."""

from typing import Any

import numpy as np

from towpath.kernels.jit import njit

# As in transport.weights: beyond this a sigmoid's gradient is too small to come back from.
_LOGIT_LIMIT = 8.0


@njit(cache=True, nogil=True, error_model="numpy")
def weigh(margins: Any, line: Any, weights: Any, floor: float, ceiling: float) -> None:
    """Fill weights (n,): floor + (ceiling - floor) * sigmoid(a + b m + c max(m, 0)), line = (a, b, c)."""
    a, b, c = line[0], line[1], line[2]
    low, span = np.float32(floor), np.float32(ceiling - floor)
    limit, one = np.float32(_LOGIT_LIMIT), np.float32(1)
    for i in range(len(margins)):
        m = margins[i]
        logit = a + b * m + c * max(m, np.float32(0))
        logit = min(max(logit, -limit), limit)
        weights[i] = low + span / (one + np.exp(-logit))


@njit(cache=True, nogil=True, error_model="numpy")
def mean_one(weights: Any, mask: Any) -> None:
    """Give weights (n,) mean one where the mask is true, and make them one elsewhere."""
    total, count = 0.0, 0
    for i in range(len(weights)):
        total += weights[i] if mask[i] else 0.0
        count += mask[i]
    scale = np.float32(count / total) if count else np.float32(1)
    for i in range(len(weights)):
        weights[i] = weights[i] * scale if mask[i] else np.float32(1)


@njit(cache=True, nogil=True, error_model="numpy")
def charges(margins: Any, losses: Any, mask: Any, weights: Any, penalty: float, charge: Any) -> int:
    """Fill charge (n,) with  loss + penalty * g  within the mask; returns how many pairs there are shown.

    g is the potential of `kernels.ordering.line_potential` up to a constant. What f shows has a margin of 0
    or more, so that below F_w - F_f = F_w > 0 and g falls with slope one: only shown pairs are sorted.
    """
    shown, total, below = 0, 0.0, 0.0
    places = np.empty(len(margins), np.int64)
    for i in range(len(margins)):
        if mask[i]:
            total += weights[i]
            if margins[i] >= 0:
                places[shown] = i
                shown += 1
            else:
                below += weights[i]
    places = places[:shown]
    places = places[np.argsort(margins[places])]
    ahead, of_shown = below / total, np.empty(shown)  # F_w - F_f from each shown pair to the next
    for n in range(shown):
        ahead += weights[places[n]] / total - 1 / shown
        of_shown[n] = ahead
    value, lowest = 0.0, margins[places[0]] if shown else np.float32(0)
    for n in range(shown - 1, -1, -1):
        # Rounding leaves crumbs where the measures agree; they must not turn into slopes of one.
        if n + 1 < shown and abs(of_shown[n]) > 1e-7:
            value += np.sign(of_shown[n]) * (margins[places[n + 1]] - margins[places[n]])
        charge[places[n]] = losses[places[n]] + penalty * value
    for i in range(len(margins)):
        if mask[i] and not margins[i] >= 0:
            charge[i] = losses[i] + penalty * (value + lowest - margins[i])
    return shown


@njit(cache=True, nogil=True, error_model="numpy")
def line_slopes(
    margins: Any, mask: Any, weights: Any, charge: Any, floor: float, ceiling: float, slopes: Any
) -> None:
    """Fill slopes (3,): the derivatives of w's payoff by its line, as `transport.objective` defines them.

    sum of (c_k - mean of c under w) / (n mean of w) * dw_k,   dw_k = (w - floor) (ceiling - w) / span
    """
    total, charged, count, n = 0.0, 0.0, 0, len(margins)
    sums = np.zeros((2, 3))  # of dw times (1, m, max(m, 0)): without and with the charge
    # A weight at either end has left the range in which the logit has a gradient.
    span = ceiling - floor
    least = span / (1 + np.exp(_LOGIT_LIMIT)) * 1.001
    for i in range(n):
        if not mask[i]:
            continue
        m, weight = np.float64(margins[i]), np.float64(weights[i])
        total += weight
        charged += weight * charge[i]
        count += 1
        up, down = weight - floor, ceiling - weight
        if span <= 0 or up < least or down < least:
            continue
        rise = up * down / span
        sums[0, 0] += rise
        sums[1, 0] += rise * charge[i]
        sums[0, 1] += rise * m
        sums[1, 1] += rise * m * charge[i]
        if m > 0:
            sums[0, 2] += rise * m
            sums[1, 2] += rise * m * charge[i]
    for j in range(3):
        slopes[j] = (sums[1, j] - charged / total * sums[0, j]) / (total / count * n)
