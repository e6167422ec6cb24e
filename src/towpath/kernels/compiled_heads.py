"""The loop over pairs of a library of heads, in Python that numba compiles, once, and keeps on disk."""

from typing import Any

import numpy as np

from towpath.kernels.jit import njit

FAST = {"reassoc", "contract", "nsz", "arcp"}
FARTHEST = np.float32(80)  # e^80 is still a float
# Places are unsigned: numba tests others for negative ones, and such loops do one number at a time. And no
# loop cuts rows out of a table: numba counts who holds each, which costs more than a short loop itself.
_1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(n) for n in range(1, 9))


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
def _sum_of(terms: Any, first: Any, count: Any) -> Any:
    """The sum of `count` terms from place `first` on, by eights, which a processor adds at once."""
    total, whole = np.float32(0), first + count - count % _8
    for j in range(first, whole, _8):
        left = (terms[j] + terms[j + _1]) + (terms[j + _2] + terms[j + _3])
        total += left + ((terms[j + _4] + terms[j + _5]) + (terms[j + _6] + terms[j + _7]))
    for j in range(whole, first + count):
        total += terms[j]
    return total


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _spread(value: Any, out: Any, first: Any, count: Any) -> None:
    """Put a number into `count` places of out, from `first` on, by eights."""
    whole = first + count - count % _8
    for j in range(first, whole, _8):
        out[j] = value
        out[j + _1] = value
        out[j + _2] = value
        out[j + _3] = value
        out[j + _4] = value
        out[j + _5] = value
        out[j + _6] = value
        out[j + _7] = value
    for j in range(whole, first + count):
        out[j] = value


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _find_logits(P: Any, Q: Any, u: Any, i: Any, bias: Any, members: Any, terms: Any, logits: Any) -> None:
    """The logits (H M,) of one pair, of all heads of all members. terms: (M d,), for what comes between."""
    outputs, size = np.uint64(len(logits)), np.uint64(len(terms))
    dim = size // members
    for j in range(size):
        terms[j] = P[u, j] * Q[i, j]
    for m in range(members):
        product = _sum_of(terms, m * dim, dim)
        for k in range(m, outputs, members):
            logits[k] = product
    for k in range(outputs):
        logits[k] += P[u, size + k] + Q[i, size + k] + bias[k]


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _find_slopes(
    chances: Any, counts: Any, prices: Any, targets: Any, weights: Any, r: Any, c: Any, members: Any
) -> None:
    """Make slopes of the chances (H M,) of a pair, and find how much it counts, price * weight: (H M,)."""
    for h in range(np.uint64(targets.shape[2])):
        target, weight, first = targets[r, c, h], weights[r, c, h], h * members
        for k in range(first, first + members):
            counts[k] = prices[k] * weight
            chances[k] = counts[k] * (chances[k] - target)


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _is_counted(weights: Any, r: Any, c: Any) -> bool:
    """Whether a pair counts for any head."""
    counted = False
    for h in range(np.uint64(weights.shape[2])):
        counted |= weights[r, c, h] != 0
    return counted


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

    Shapes as in `kernels.heads`. The long loops run over all members at once.
    """
    members, outputs = np.uint64(len(l2)), np.uint64(prices.size)
    size = np.uint64(P.shape[1]) - outputs
    dim, two = size // members, np.float32(2)
    slopes, shrinks = np.empty(size, np.float32), np.empty(size, np.float32)
    rooms, bits = np.empty((2, prices.size), np.float32), np.empty(prices.size, np.int32)
    chances, counts, totals = rooms[0], rooms[1], np.zeros(prices.size, np.float32)
    flat_bias, flat_prices = bias.reshape(bias.size), prices.reshape(prices.size)
    for r in range(np.uint64(len(users))):
        u, to_u = np.uint64(users[r]), np.uint64(user_places[r])
        for c in range(np.uint64(items.shape[1])):
            if not _is_counted(weights, r, c):
                continue
            i, to_i = np.uint64(items[r, c]), np.uint64(item_places[r, c])
            _find_logits(P, Q, u, i, flat_bias, members, slopes, counts)
            sigmoids(counts, bits, chances)
            _find_slopes(chances, counts, flat_prices, targets, weights, r, c, members)
            for m in range(members):
                slope, charge = np.float32(0), np.float32(0)
                for k in range(m, outputs, members):
                    slope += chances[k]
                    charge += counts[k]
                _spread(slope, slopes, m * dim, dim)
                _spread(two * l2[m] * charge, shrinks, m * dim, dim)
            for k in range(outputs):
                to_P[to_u, size + k] += chances[k]
                to_Q[to_i, size + k] += chances[k]
                totals[k] += chances[k]
            for j in range(size):
                to_P[to_u, j] += slopes[j] * Q[i, j] + shrinks[j] * P[u, j]
                to_Q[to_i, j] += slopes[j] * P[u, j] + shrinks[j] * Q[i, j]
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
