"""The loop over pairs of a library of heads, in Python that numba compiles, once, and keeps on disk."""

from typing import Any

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
_FARTHEST = np.float32(80)  # e^80 is still a float


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy")
def sigmoids(logits: Any, bits: Any, out: Any) -> None:
    """1 / (1 + e^-x) of every logit, seven digits, without a branch or a call, so that many go at once.

    e^t = 2^n e^r with |r| <= log(2) / 2: the exponent bits of a float, times a polynomial.
    logits, out: (n,) float32; bits: (n,) int32, for what is computed on the way.
    """
    one = np.float32(1)
    for j in range(len(logits)):
        t = min(max(-logits[j], -_FARTHEST), _FARTHEST)
        n = np.floor(t * np.float32(1.44269504) + np.float32(0.5))
        r = t - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
        y = np.float32(1.9875691e-4) * r + np.float32(1.3981999e-3)
        y = y * r + np.float32(8.3334519e-3)
        y = y * r + np.float32(4.1665796e-2)
        y = y * r + np.float32(1.6666665e-1)
        y = y * r + np.float32(0.5)
        out[j] = y * r * r + r + one
        bits[j] = (np.int32(n) + np.int32(127)) << np.int32(23)
    powers = bits.view(np.float32)
    for j in range(len(logits)):
        out[j] = one / (one + out[j] * powers[j])


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _find_logits(p: Any, q: Any, flat: Any, terms: Any, logits: Any) -> None:
    """Put each member's inner product into the logits (H, M) of all of its heads.

    p, q: (M d,) vectors of all members. flat, terms: (M d,) and (M, d), one place for what comes between.
    """
    heads, members = logits.shape
    for j in range(len(p)):
        flat[j] = p[j] * q[j]
    for m in range(members):
        product = np.float32(0)
        for j in range(terms.shape[1]):
            product += terms[m, j]
        for h in range(heads):
            logits[h, m] = product


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _find_slopes(
    chances: Any, target: Any, weight: Any, prices: Any, l2: Any, slopes: Any, shrinks: Any
) -> None:
    """Make slopes of the chances (H, M), and spread those of a member, and its shrinkage, over its vector.

    target, weight: (H,) of this pair. slopes, shrinks: (M, d).
    """
    heads, members = chances.shape
    for h in range(heads):
        for m in range(members):
            chances[h, m] = prices[h, m] * weight[h] * (chances[h, m] - target[h])
    for m in range(members):
        slope, charge = np.float32(0), np.float32(0)
        for h in range(heads):
            slope += chances[h, m]
            charge += prices[h, m] * weight[h]
        for j in range(slopes.shape[1]):
            slopes[m, j] = slope
            shrinks[m, j] = np.float32(2) * l2[m] * charge


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy")
def head_gradients(
    P: Any,
    Q: Any,
    bias: Any,
    users: Any,
    items: Any,
    user_places: Any,
    item_places: Any,
    targets: Any,
    weights: Any,
    prices: Any,
    l2: Any,
    to_P: Any,
    to_Q: Any,
    to_bias: Any,
) -> None:
    """Add to to_P, to_Q and to_bias what every pair sends there, through every head of every member.

    Shapes as in `kernels.heads`. The long loops run over all members at once.
    """
    outputs, members = prices.size, len(l2)
    size = P.shape[1] - outputs
    slopes = np.empty((members, size // members), np.float32)
    shrinks = np.empty_like(slopes)
    flat_slopes, flat_shrinks = slopes.reshape(size), shrinks.reshape(size)
    logits, chances, bits = np.empty_like(prices), np.empty_like(prices), np.empty(outputs, np.int32)
    flat_logits, found = logits.reshape(outputs), chances.reshape(outputs)
    flat_bias, to_flat = bias.reshape(outputs), to_bias.reshape(outputs)
    for r in range(len(users)):
        u, to_u = np.uint64(users[r]), np.uint64(user_places[r])
        p, p_bias, to_p, to_p_bias = P[u, :size], P[u, size:], to_P[to_u, :size], to_P[to_u, size:]
        for c in range(items.shape[1]):
            target, weight = targets[r, c], weights[r, c]
            if not weight.any():
                continue
            i, to_i = np.uint64(items[r, c]), np.uint64(item_places[r, c])
            q, q_bias, to_q, to_q_bias = Q[i, :size], Q[i, size:], to_Q[to_i, :size], to_Q[to_i, size:]
            _find_logits(p, q, flat_slopes, slopes, logits)
            for j in range(outputs):
                flat_logits[j] += p_bias[j] + q_bias[j] + flat_bias[j]
            sigmoids(flat_logits, bits, found)
            _find_slopes(chances, target, weight, prices, l2, slopes, shrinks)
            for j in range(outputs):
                to_p_bias[j] += found[j]
                to_q_bias[j] += found[j]
                to_flat[j] += found[j]
            for j in range(size):
                to_p[j] += flat_slopes[j] * q[j] + flat_shrinks[j] * p[j]
                to_q[j] += flat_slopes[j] * p[j] + flat_shrinks[j] * q[j]
