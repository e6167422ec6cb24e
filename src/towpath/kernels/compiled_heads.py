"""The loop over pairs of a library of heads, in Python that numba compiles, once, and keeps on disk."""

from typing import Any

import numpy as np

from towpath.kernels.jit import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
_FARTHEST = np.float32(80)  # e^80 is still a float
_AT_ONCE, _LANES = 256, 32  # users of a block that are done together, and in one turn of a loop


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _powers(logits: Any, bits: Any, out: Any) -> None:
    """e^-x of every logit as out * (bits taken for a float), without a branch or a call: many go at once.

    e^t = 2^n e^r with |r| <= log(2) / 2: the exponent bits of a float, times a polynomial.
    logits, out: (n,) float32; bits: (n,) int32.
    """
    for j in range(len(logits)):
        t = min(max(-logits[j], -_FARTHEST), _FARTHEST)
        n = np.floor(t * np.float32(1.44269504) + np.float32(0.5))
        r = t - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
        y = np.float32(1.9875691e-4) * r + np.float32(1.3981999e-3)
        y = y * r + np.float32(8.3334519e-3)
        y = y * r + np.float32(4.1665796e-2)
        y = y * r + np.float32(1.6666665e-1)
        y = y * r + np.float32(0.5)
        out[j] = y * r * r + r + np.float32(1)
        bits[j] = (np.int32(n) + np.int32(127)) << np.int32(23)


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy")
def sigmoids(logits: Any, bits: Any, out: Any) -> None:
    """1 / (1 + e^-x) of every logit, seven digits. Shapes as in `_powers`."""
    _powers(logits, bits, out)
    one, powers = np.float32(1), bits.view(np.float32)
    for j in range(len(logits)):
        out[j] = one / (one + out[j] * powers[j])


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy")
def exponentials(logits: Any, bits: Any, out: Any) -> None:
    """e^-x of every logit, seven digits. Shapes as in `_powers`."""
    _powers(logits, bits, out)
    powers = bits.view(np.float32)
    for j in range(len(logits)):
        out[j] *= powers[j]


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
def _add_products(slopes: Any, q: Any, PT: Any, to_q: Any, to_PT: Any) -> None:
    """to_q += slopes PT', and to_PT += q' slopes: what the inner products of four items send back.

    slopes: (4, n), q, to_q: (4, d), PT, to_PT: (d, n). Four at a time: each row of PT comes once for all.
    """
    s0, s1, s2, s3 = slopes[0], slopes[1], slopes[2], slopes[3]
    for j in range(PT.shape[0]):
        q0, q1, q2, q3, p, to_p = q[0, j], q[1, j], q[2, j], q[3, j], PT[j], to_PT[j]
        t0, t1, t2, t3 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        for n in range(PT.shape[1]):
            t0 += s0[n] * p[n]
            t1 += s1[n] * p[n]
            t2 += s2[n] * p[n]
            t3 += s3[n] * p[n]
            to_p[n] += s0[n] * q0 + s1[n] * q1 + s2[n] * q2 + s3[n] * q3
        to_q[0, j] += t0
        to_q[1, j] += t1
        to_q[2, j] += t2
        to_q[3, j] += t3


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _add_head(
    powers: Any, of_users: Any, of_item: Any, counted: Any, slope: Any, slopes: Any, to_p: Any
) -> Any:
    """Add the slopes of one head for one item, and return their sum.

    chance = 1 / (1 + e^-T e^-a_u e^-b_i): the first factor serves all heads, the second all items.
    All but of_item: (n,). Short loops over few arrays, which a compiler can tell apart.
    """
    one, total = np.float32(1), np.float32(0)
    for n in range(len(powers)):
        slope[n] = counted[n] / (one + powers[n] * of_users[n] * of_item)
    for n in range(len(powers)):
        slopes[n] += slope[n]
        to_p[n] += slope[n]
        total += slope[n]
    return total


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _add_charge(price: Any, weight: Any, counted: Any, charges: Any) -> Any:
    """Put price * weight into counted, as far as there are weights, add it to the charges; its sum."""
    total = np.float32(0)
    for n in range(len(weight)):
        counted[n] = price * weight[n]
    for n in range(len(counted)):
        charges[n] += counted[n]
        total += counted[n]
    return total


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _add_member(
    m: Any, Q: Any, PT: Any, bias: Any, items: Any, places: Any, weights: Any,
    prices: Any, l2: Any, to_Q: Any, to_PT: Any, to_bias: Any,
) -> None:  # fmt: skip
    """The gradients of member m for users side by side: PT, to_PT (M d + H M, n), weights (s, H, up to n)."""
    heads, members = prices.shape
    size, count = Q.shape[1] - heads * members, PT.shape[1]
    dim = size // members
    vectors = slice(m * dim, (m + 1) * dim)
    p, to_p, two = PT[vectors], to_PT[vectors], np.float32(2)
    rooms, bits = np.zeros((5, count), np.float32), np.empty(count, np.int32)
    products, powers, slope, counted, charges = rooms[0], rooms[1], rooms[2], rooms[3], rooms[4]
    of_users, slopes = np.empty((heads, count), np.float32), np.empty((4, count), np.float32)
    own, to_own = np.empty((4, dim), np.float32), np.empty((4, dim), np.float32)
    for h in range(heads):
        exponentials(PT[size + h * members + m], bits, of_users[h])
    for start in range(0, len(items), 4):
        here = min(4, len(items) - start)
        slopes[:], own[:], to_own[:] = 0, 0, 0
        for c in range(here):
            q, to_q, shrink = Q[items[start + c]], to_Q[places[start + c]], np.float32(0)
            own[c] = q[vectors]
            _inner_products(own[c], p, products)
            exponentials(products, bits, powers)
            for h in range(heads):
                at = size + h * members + m
                if prices[h, m] == 0:
                    continue
                shrink += _add_charge(prices[h, m], weights[start + c, h], counted, charges)
                of_item = np.exp(min(max(-q[at] - bias[h, m], -_FARTHEST), _FARTHEST))
                total = _add_head(powers, of_users[h], of_item, counted, slope, slopes[c], to_PT[at])
                to_q[at] += total
                to_bias[h, m] += total
            for j in range(dim):
                to_q[m * dim + j] += two * l2[m] * shrink * own[c, j]
        _add_products(slopes, own, p, to_own, to_p)
        for c in range(here):
            to_q = to_Q[places[start + c]]
            for j in range(dim):
                to_q[m * dim + j] += to_own[c, j]
    for j in range(dim):
        for n in range(count):
            to_p[j, n] += two * l2[m] * charges[n] * p[j, n]


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _lay_side_by_side(P: Any, rows: Any, PT: Any) -> None:
    """Put the rows of a table into the columns of PT, four at a time: what is written lies together."""
    whole = len(rows) - len(rows) % 4
    for n in range(0, whole, 4):
        p0, p1, p2, p3 = P[rows[n]], P[rows[n + 1]], P[rows[n + 2]], P[rows[n + 3]]
        for j in range(PT.shape[0]):
            PT[j, n] = p0[j]
            PT[j, n + 1] = p1[j]
            PT[j, n + 2] = p2[j]
            PT[j, n + 3] = p3[j]
    for n in range(whole, len(rows)):
        for j in range(PT.shape[0]):
            PT[j, n] = P[rows[n], j]


@njit(cache=True, fastmath=_FAST, nogil=True, error_model="numpy", inline="always")
def _add_back(PT: Any, rows: Any, P: Any) -> None:
    """Add the columns of PT to the rows of a table, each of which is named once."""
    whole = len(rows) - len(rows) % 4
    for n in range(0, whole, 4):
        p0, p1, p2, p3 = P[rows[n]], P[rows[n + 1]], P[rows[n + 2]], P[rows[n + 3]]
        for j in range(PT.shape[0]):
            p0[j] += PT[j, n]
            p1[j] += PT[j, n + 1]
            p2[j] += PT[j, n + 2]
            p3[j] += PT[j, n + 3]
    for n in range(whole, len(rows)):
        for j in range(PT.shape[0]):
            P[rows[n], j] += PT[j, n]


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
        _lay_side_by_side(P, users[start : start + here], PT)
        own = weights[:, :, start : start + here]
        for m in range(members):
            if prices[:, m].any():
                _add_member(m, Q, PT, bias, items, item_places, own, prices, l2, to_Q, to_PT, to_bias)
        _add_back(to_PT, user_places[start : start + here], to_P)
