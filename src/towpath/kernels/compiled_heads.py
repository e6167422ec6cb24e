"""The loop over pairs of a library of heads, in Python that numba compiles, once, and keeps on disk."""

from typing import Any

import numpy as np

from towpath.kernels.eights import add_scaled, inner_product
from towpath.kernels.jit import njit

FAST = {"reassoc", "contract", "nsz", "arcp"}
FARTHEST = np.float32(80)  # e^80 is still a float
# Places are unsigned: numba tests others for negative ones, and such loops do one number at a time. And no
# loop cuts rows out of a table: numba counts who holds each, which costs more than a short loop itself.
_0, _8 = np.uint64(0), np.uint64(8)
_AT_ONCE = np.uint64(16)  # pairs whose chances are found together


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _powers(logits: Any, bits: Any, out: Any) -> None:
    """e^-x of every logit as out * (bits taken for a float), without a branch or a call: many go at once.

    e^t = 2^n e^r with |r| <= log(2) / 2: the exponent bits of a float, times a polynomial.
    logits, out: (n,) float32; bits: (n,) int32.
    """
    for j in range(len(logits)):
        t = min(max(-logits[j], -FARTHEST), FARTHEST)
        n = np.floor(t * np.float32(1.44269504) + np.float32(0.5))
        r = t - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
        y = np.float32(1.9875691e-4) * r + np.float32(1.3981999e-3)
        y = y * r + np.float32(8.3334519e-3)
        y = y * r + np.float32(4.1665796e-2)
        y = y * r + np.float32(1.6666665e-1)
        y = y * r + np.float32(0.5)
        out[j] = y * r * r + r + np.float32(1)
        bits[j] = (np.int32(n) + np.int32(127)) << np.int32(23)


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy")
def sigmoids(logits: Any, bits: Any, out: Any) -> None:
    """1 / (1 + e^-x) of every logit, seven digits. Shapes as in `_powers`."""
    _powers(logits, bits, out)
    one, powers = np.float32(1), bits.view(np.float32)
    for j in range(len(logits)):
        out[j] = one / (one + out[j] * powers[j])


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy")
def exponentials(logits: Any, bits: Any, out: Any) -> None:
    """e^-x of every logit, seven digits. Shapes as in `_powers`."""
    _powers(logits, bits, out)
    powers = bits.view(np.float32)
    for j in range(len(logits)):
        out[j] *= powers[j]


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _find_logits(
    P: Any, p: Any, Q: Any, q: Any, bias: Any, heads: Any, members: Any, dim: Any, logits: Any, at: Any
) -> None:
    """The logits (H M,) of one pair, of all heads of all members; p, q and at are places."""
    outputs, size, eights = heads * members, members * dim, dim // _8
    for m in range(members):
        product, first = inner_product(P, p + m * dim, Q, q + m * dim, eights), m * dim
        for j in range(first + eights * _8, first + dim):
            product += P[p + j] * Q[q + j]
        for h in range(heads):
            logits[at + h * members + m] = product
    for k in range(outputs):
        logits[at + k] += P[p + size + k] + Q[q + size + k] + bias[k]


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _send_back(
    P: Any, p: Any, Q: Any, q: Any, slope: Any, shrink: Any, dim: Any, to_P: Any, to_p: Any
) -> None:
    """Add slope Q + shrink P to to_P: what a pair sends to one vector; p, q and to_p are places."""
    eights = dim // _8
    add_scaled(to_P, to_p, Q, q, P, p, slope, shrink, eights)
    for j in range(eights * _8, dim):
        to_P[to_p + j] += slope * Q[q + j] + shrink * P[p + j]


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _find_slopes(
    chances: Any, at: Any, prices: Any, targets: Any, weights: Any, r: Any, c: Any, members: Any, counts: Any
) -> None:
    """Make slopes of the chances of a pair, and find how much it counts, price * weight: (H M,)."""
    for h in range(np.uint64(targets.shape[2])):
        target, weight, first = targets[r, c, h], weights[r, c, h], h * members
        for k in range(first, first + members):
            counts[k] = prices[k] * weight
            chances[at + k] = counts[k] * (chances[at + k] - target)


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _send_pair(
    P: Any, p: Any, Q: Any, q: Any, slopes: Any, at: Any, counts: Any, l2: Any, heads: Any, dim: Any,
    to_P: Any, to_p: Any, to_Q: Any, to_q: Any,
) -> None:  # fmt: skip
    """What a pair sends to the vectors of all members, by its slopes (from place `at` on) and counts."""
    members = np.uint64(len(l2))
    for m in range(members):
        slope, charge, j = np.float32(0), np.float32(0), m * dim
        for h in range(heads):
            slope += slopes[at + h * members + m]
            charge += counts[h * members + m]
        shrink = np.float32(2) * l2[m] * charge
        _send_back(P, p + j, Q, q + j, slope, shrink, dim, to_P, to_p + j)
        _send_back(Q, q + j, P, p + j, slope, shrink, dim, to_Q, to_q + j)


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy")
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

    Shapes as in `kernels.heads`.
    """
    heads, members, width = np.uint64(prices.shape[0]), np.uint64(prices.shape[1]), np.uint64(P.shape[1])
    outputs, rows = heads * members, np.uint64(len(users))
    size = width - outputs
    dim = size // members
    rooms, bits = np.zeros((2, _AT_ONCE * outputs), np.float32), np.empty(_AT_ONCE * outputs, np.int32)
    logits, chances = rooms[0], rooms[1]
    counts, totals = np.empty(outputs, np.float32), np.zeros(outputs, np.float32)
    flat_bias, flat_prices = bias.reshape(bias.size), prices.reshape(prices.size)
    P, Q, to_P, to_Q = P.reshape(P.size), Q.reshape(Q.size), to_P.reshape(to_P.size), to_Q.reshape(to_Q.size)
    for c in range(np.uint64(items.shape[1])):
        for start in range(_0, rows, _AT_ONCE):
            here = min(_AT_ONCE, rows - start)
            for n in range(here):
                p, q = np.uint64(users[start + n]) * width, np.uint64(items[start + n, c]) * width
                _find_logits(P, p, Q, q, flat_bias, heads, members, dim, logits, n * outputs)
            sigmoids(logits, bits, chances)
            for n in range(here):
                r, at = start + n, n * outputs
                p, to_p = np.uint64(users[r]) * width, np.uint64(user_places[r]) * width
                q, to_q = np.uint64(items[r, c]) * width, np.uint64(item_places[r, c]) * width
                _find_slopes(chances, at, flat_prices, targets, weights, r, c, members, counts)
                _send_pair(P, p, Q, q, chances, at, counts, l2, heads, dim, to_P, to_p, to_Q, to_q)
                for k in range(outputs):
                    to_P[to_p + size + k] += chances[at + k]
                    to_Q[to_q + size + k] += chances[at + k]
                    totals[k] += chances[at + k]
    to_bias += totals.reshape(to_bias.shape)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_rows(
    users: Any,
    items: Any,
    clicks: Any,
    chosen: Any,
    rows: Any,
    own_users: Any,
    own_items: Any,
    targets: Any,
    counts: Any,
    once: Any,
    per_user: Any,
) -> int:
    """Fill what `kernels.impression_rows` asks for; how many different users there are."""
    place, one = -1, np.float32(1)
    for n in range(len(rows)):
        row = rows[n]
        user, clicked, counted = users[row], clicks[row], chosen[row]
        if place < 0 or once[place] != user:
            place += 1
            once[place] = user
        own_users[n], own_items[n, 0] = user, items[row]
        targets[n, 0, 0], targets[n, 0, 1], targets[n, 0, 2] = one, clicked, one
        counts[n, 0, 0], counts[n, 0, 1], counts[n, 0, 2] = counted, one, clicked * counted
        per_user[0, place] += counted
        per_user[1, place] += one
        per_user[2, place] += clicked * counted
    return place + 1
