"""The loop over pairs of a library of heads, in Python that numba compiles, once, and keeps on disk."""

from typing import Any

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
_FARTHEST = np.float32(80)  # e^80 is still a float
_AT_ONCE, _LANES = 256, 32  # users of a block that are done together, and in one turn of a loop


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


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _inner_products(q: Any, PT: Any, out: Any) -> None:
    """Put <p_n, q> into out (n,); q: (d,), PT: (d, n). Four numbers of q at a time, so that sums stay put."""
    dim, count = PT.shape
    whole = dim - dim % 4
    for n in range(count):
        out[n] = np.float32(0)
    for j in range(0, whole, 4):
        q0, q1, q2, q3 = q[j], q[j + 1], q[j + 2], q[j + 3]
        p0, p1, p2, p3 = PT[j], PT[j + 1], PT[j + 2], PT[j + 3]
        for n in range(count):
            out[n] += q0 * p0[n] + q1 * p1[n] + q2 * p2[n] + q3 * p3[n]
    for j in range(whole, dim):
        q0, p0 = q[j], PT[j]
        for n in range(count):
            out[n] += q0 * p0[n]


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _add_products(slopes: Any, q: Any, PT: Any, shrink: Any, to_q: Any, to_PT: Any) -> None:
    """to_q += PT slopes + shrink q, and to_PT += q slopes': what the inner products send back.

    slopes: (n,), q, to_q: (d,), PT, to_PT: (d, n).
    """
    for j in range(len(q)):
        own, p, to_p, total = q[j], PT[j], to_PT[j], np.float32(0)
        for n in range(len(slopes)):
            total += slopes[n] * p[n]
            to_p[n] += slopes[n] * own
        to_q[j] += total + shrink * own


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _add_member(
    m: Any, Q: Any, PT: Any, bias: Any, items: Any, places: Any, weights: Any, used: Any,
    prices: Any, l2: Any, to_Q: Any, to_PT: Any, to_bias: Any,
) -> None:  # fmt: skip
    """The gradients of member m for users side by side: PT, to_PT (M d + H M, n), weights (s, H, n).

    used: (s, H) where some weight is not 0.
    """
    heads, members = prices.shape
    size, count = Q.shape[1] - heads * members, PT.shape[1]
    dim = size // members
    vectors = slice(m * dim, (m + 1) * dim)
    p, to_p = PT[vectors], to_PT[vectors]
    rooms = np.empty((4, count), np.float32)
    products, logits, chances, slopes = rooms[0], rooms[1], rooms[2], rooms[3]
    charges, bits = np.zeros(count, np.float32), np.empty(count, np.int32)
    for r in range(len(items)):
        q, to_q, known, shrink = Q[items[r]], to_Q[places[r]], False, np.float32(0)
        for h in range(heads):
            price, weight, at = prices[h, m], weights[r, h], size + h * members + m
            if price == 0 or not used[r, h]:
                continue
            if not known:
                _inner_products(q[vectors], p, products)
                slopes[:] = 0
                known = True
            own, p_bias, to_p_bias, total = q[at] + bias[h, m], PT[at], to_PT[at], np.float32(0)
            for n in range(count):
                logits[n] = products[n] + p_bias[n] + own
            sigmoids(logits, bits, chances)
            for n in range(count):
                counted = price * weight[n]
                slope = counted * chances[n]
                slopes[n] += slope
                to_p_bias[n] += slope
                charges[n] += counted
                total += slope
                shrink += counted
            to_q[at] += total
            to_bias[h, m] += total
        if known:
            _add_products(slopes, q[vectors], p, np.float32(2) * l2[m] * shrink, to_q[vectors], to_p)
    for j in range(dim):
        for n in range(count):
            to_p[j, n] += np.float32(2) * l2[m] * charges[n] * p[j, n]


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy")
def block_gradients(
    P: Any,
    Q: Any,
    bias: Any,
    users: Any,
    items: Any,
    user_places: Any,
    item_places: Any,
    weights: Any,
    prices: Any,
    l2: Any,
    to_P: Any,
    to_Q: Any,
    to_bias: Any,
) -> None:
    """Add what every pair of a user and an item of the block sends, as a negative of every head.

    Shapes as in `kernels.heads`. Users are laid side by side, so that the long loops run over them, as many
    as stay in the fastest cache, and filled up to what a loop does in one turn.
    """
    width, members = P.shape[1], prices.shape[1]
    for start in range(0, len(users), _AT_ONCE):
        here = min(_AT_ONCE, len(users) - start)
        count = (here + _LANES - 1) // _LANES * _LANES
        PT, to_PT = np.zeros((width, count), np.float32), np.zeros((width, count), np.float32)
        own = np.zeros((weights.shape[0], weights.shape[1], count), np.float32)
        own[:, :, :here] = weights[:, :, start : start + here]
        used = np.empty(weights.shape[:2], np.bool_)
        for r in range(len(items)):
            for h in range(weights.shape[1]):
                used[r, h] = own[r, h].any()
        for n in range(here):
            row = P[users[start + n]]
            for j in range(width):
                PT[j, n] = row[j]
        for m in range(members):
            _add_member(m, Q, PT, bias, items, item_places, own, used, prices, l2, to_Q, to_PT, to_bias)
        for n in range(here):
            row = to_P[user_places[start + n]]
            for j in range(width):
                row[j] += to_PT[j, n]
