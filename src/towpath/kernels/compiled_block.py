"""The loop over a block of users and items of a library of heads, in Python that numba compiles.

Users lie side by side, so that the long loops run over them: number j of user n is at place j * _STEP + n of
one long array. The distance between two rows is then known to the compiler, which can tell that what a loop
reads is not what it writes, and do eight users at a time.
"""

from typing import Any

import numpy as np

from towpath.kernels.compiled_heads import FARTHEST, FAST, exponentials
from towpath.kernels.jit import njit

# Users that are done together: few enough for a near cache. A step that is no power of two, so that the rows
# do not all compete for the same places of it.
_AT_ONCE, _LANES, _STEP = np.uint64(256), np.uint64(32), np.uint64(272)
_0, _1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(n) for n in range(9))


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _inner_products(own: Any, c: Any, PT: Any, at: Any, dim: Any, count: Any, out: Any) -> None:
    """Put <p_n, q_c> into row c of out, for the vectors of PT from row `at` on. own: (4 d,), four items."""
    q, o, whole = c * dim, c * _STEP, dim - dim % _8
    for n in range(count):
        out[o + n] = np.float32(0)
    for j in range(q, q + whole, _8):
        q0, q1, q2, q3 = own[j], own[j + _1], own[j + _2], own[j + _3]
        q4, q5, q6, q7 = own[j + _4], own[j + _5], own[j + _6], own[j + _7]
        a = (at + j - q) * _STEP
        for n in range(a, a + count):
            left = q0 * PT[n] + q1 * PT[n + _STEP] + q2 * PT[n + _2 * _STEP] + q3 * PT[n + _3 * _STEP]
            out[o + n - a] += (
                left
                + (q4 * PT[n + _4 * _STEP] + q5 * PT[n + _5 * _STEP])
                + (q6 * PT[n + _6 * _STEP] + q7 * PT[n + _7 * _STEP])
            )
    for j in range(q + whole, q + dim):
        a = (at + j - q) * _STEP
        for n in range(count):
            out[o + n] += own[j] * PT[a + n]


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _send_back(
    slopes: Any, own: Any, PT: Any, at: Any, dim: Any, count: Any, to_own: Any, to_PT: Any
) -> None:
    """to_own = slopes P, and to_P += slopes' own: what the inner products of four items send back."""
    for j in range(dim):
        q0, q1, q2, q3 = own[j], own[dim + j], own[_2 * dim + j], own[_3 * dim + j]
        t0, t1, t2, t3 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        a = (at + j) * _STEP
        for n in range(count):
            s0, s1, s2, s3 = slopes[n], slopes[_STEP + n], slopes[_2 * _STEP + n], slopes[_3 * _STEP + n]
            p = PT[a + n]
            t0 += s0 * p
            t1 += s1 * p
            t2 += s2 * p
            t3 += s3 * p
            to_PT[a + n] += s0 * q0 + s1 * q1 + s2 * q2 + s3 * q3
        to_own[j], to_own[dim + j], to_own[_2 * dim + j], to_own[_3 * dim + j] = t0, t1, t2, t3


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _add_head(
    powers: Any, o: Any, of_users: Any, u: Any, factor: Any, counted: Any, w: Any, price: Any,
    count: Any, slopes: Any, to_PT: Any, a: Any,
) -> Any:  # fmt: skip
    """Add the slopes of one head for one item, and return their sum; o, u, w and a are places of rows.

    chance = 1 / (1 + e^-T e^-a_u e^-b_i): the first power serves all heads, the second all items.
    """
    one, total = np.float32(1), np.float32(0)
    for n in range(count):
        slope = price * counted[w + n] / (one + powers[o + n] * of_users[u + n] * factor)
        slopes[o + n] += slope
        to_PT[a + n] += slope
        total += slope
    return total


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _add_items(
    m: Any, start: Any, here: Any, Q: Any, bias: Any, items: Any, places: Any, counted: Any, prices: Any,
    count: Any, rooms: Any, to_Q: Any, to_PT: Any, to_bias: Any,
) -> None:  # fmt: skip
    """The slopes of four items, or as many as are here, for every head of member m; what biases receive."""
    heads, members = np.uint64(prices.shape[0]), np.uint64(prices.shape[1])
    size = np.uint64(Q.shape[1]) - heads * members
    _, powers, slopes, of_users = rooms
    for k in range(np.uint64(len(slopes))):
        slopes[k] = np.float32(0)
    for c in range(here):
        i, to_i = np.uint64(items[start + c]), np.uint64(places[start + c])
        for h in range(heads):
            at, price = size + h * members + m, prices[h, m]
            if price == 0:
                continue
            factor = np.exp(min(max(-Q[i, at] - bias[h, m], -FARTHEST), FARTHEST))
            w = ((start + c) * heads + h) * _STEP
            total = _add_head(
                powers, c * _STEP, of_users, h * _STEP, factor, counted, w, price, count, slopes, to_PT,
                at * _STEP,
            )  # fmt: skip
            to_Q[to_i, at] += total
            to_bias[h, m] += total


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _add_member(
    m: Any, Q: Any, PT: Any, bias: Any, items: Any, places: Any, counted: Any, per_item: Any, prices: Any,
    l2: Any, count: Any, rooms: Any, bits: Any, own: Any, to_own: Any, to_Q: Any, to_PT: Any, to_bias: Any,
) -> None:  # fmt: skip
    """The gradients of member m for the users of PT and all items, but for the L2 penalty of the users."""
    heads, dim = np.uint64(prices.shape[0]), np.uint64(len(own)) // _4
    at, products, powers, slopes = m * dim, rooms[0], rooms[1], rooms[2]
    for start in range(_0, np.uint64(len(items)), _4):
        here = min(_4, np.uint64(len(items)) - start)
        own[:] = 0
        for c in range(here):
            i = np.uint64(items[start + c])
            for j in range(dim):
                own[c * dim + j] = Q[i, at + j]
            _inner_products(own, c, PT, at, dim, count, products)
        exponentials(products, bits, powers)
        _add_items(
            m, start, here, Q, bias, items, places, counted, prices, count, rooms, to_Q, to_PT, to_bias
        )
        _send_back(slopes, own, PT, at, dim, count, to_own, to_PT)
        for c in range(here):
            to_i, shrink = np.uint64(places[start + c]), np.float32(0)
            for h in range(heads):
                shrink += np.float32(2) * l2[m] * prices[h, m] * per_item[(start + c) * heads + h]
            for j in range(c * dim, (c + _1) * dim):
                to_Q[to_i, at + j - c * dim] += to_own[j] + shrink * own[j]


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _shrink_users(
    m: Any, dim: Any, PT: Any, per_user: Any, prices: Any, l2: Any, count: Any, to_PT: Any
) -> None:
    """The L2 penalty of the users' vectors: each by how much all of its pairs count."""
    for h in range(np.uint64(prices.shape[0])):
        price, o = np.float32(2) * l2[m] * prices[h, m], h * _STEP
        if price == 0:
            continue
        for j in range(m * dim, (m + _1) * dim):
            a = j * _STEP
            for n in range(count):
                to_PT[a + n] += price * per_user[o + n] * PT[a + n]


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _lay_side_by_side(P: Any, users: Any, start: Any, here: Any, count: Any, PT: Any) -> None:
    """Put the rows of users into columns, four at a time: what is written lies together. The rest is 0."""
    whole, width = here - here % _4, np.uint64(P.shape[1])
    for n in range(_0, whole, _4):
        u0, u1 = np.uint64(users[start + n]), np.uint64(users[start + n + _1])
        u2, u3 = np.uint64(users[start + n + _2]), np.uint64(users[start + n + _3])
        for j in range(width):
            p0, p1, p2, p3 = P[u0, j], P[u1, j], P[u2, j], P[u3, j]
            k = j * _STEP + n
            PT[k], PT[k + _1], PT[k + _2], PT[k + _3] = p0, p1, p2, p3
    for j in range(width):
        for n in range(whole, here):
            PT[j * _STEP + n] = P[np.uint64(users[start + n]), j]
        for n in range(here, count):
            PT[j * _STEP + n] = np.float32(0)


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _add_back(PT: Any, places: Any, start: Any, here: Any, P: Any) -> None:
    """Add the columns of PT to the rows of a table, each of which is named once."""
    whole, width = here - here % _4, np.uint64(P.shape[1])
    for n in range(_0, whole, _4):
        u0, u1 = np.uint64(places[start + n]), np.uint64(places[start + n + _1])
        u2, u3 = np.uint64(places[start + n + _2]), np.uint64(places[start + n + _3])
        for j in range(width):
            k = j * _STEP + n
            P[u0, j] += PT[k]
            P[u1, j] += PT[k + _1]
            P[u2, j] += PT[k + _2]
            P[u3, j] += PT[k + _3]
    for n in range(whole, here):
        for j in range(width):
            P[np.uint64(places[start + n]), j] += PT[j * _STEP + n]


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy", inline="always")
def _lay_weights(
    weights: Any, start: Any, here: Any, count: Any, counted: Any, per_user: Any, per_item: Any
) -> None:
    """Put the weights (s, H, n) of these users into rows, and their sums over items and over users."""
    heads = np.uint64(weights.shape[1])
    per_user[:] = 0
    for s in range(np.uint64(weights.shape[0])):
        for h in range(heads):
            w, o, total = (s * heads + h) * _STEP, h * _STEP, np.float32(0)
            for n in range(here):
                each = weights[s, h, start + n]
                counted[w + n] = each
                per_user[o + n] += each
                total += each
            for n in range(here, count):
                counted[w + n] = np.float32(0)
            per_item[s * heads + h] = total


@njit(cache=True, fastmath=FAST, nogil=True, error_model="numpy")
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

    Shapes as in `kernels.heads`. Heads that no pair counts for are passed over.
    """
    width, rows = np.uint64(P.shape[1]), np.uint64(weights.shape[0] * weights.shape[1])
    heads, members = np.uint64(prices.shape[0]), np.uint64(prices.shape[1])
    size = width - heads * members
    dim = size // members
    PT, to_PT = np.empty(width * _STEP, np.float32), np.empty(width * _STEP, np.float32)
    counted, per_item = np.empty(rows * _STEP, np.float32), np.empty(rows, np.float32)
    per_user, raw = np.empty(heads * _STEP, np.float32), np.zeros(heads * _STEP, np.float32)
    four = _4 * _STEP
    products, powers, slopes = (
        np.zeros(four, np.float32),
        np.empty(four, np.float32),
        np.empty(four, np.float32),
    )
    rooms = (products, powers, slopes, np.empty_like(raw))
    bits = np.empty(max(_4, heads) * _STEP, np.int32)
    own, to_own = np.empty(_4 * dim, np.float32), np.empty(_4 * dim, np.float32)
    own_prices = np.empty_like(prices)
    for start in range(_0, np.uint64(len(users)), _AT_ONCE):
        here = min(_AT_ONCE, np.uint64(len(users)) - start)
        count = (here + _LANES - _1) // _LANES * _LANES
        to_PT[:] = 0
        _lay_side_by_side(P, users, start, here, count, PT)
        _lay_weights(weights, start, here, count, counted, per_user, per_item)
        for h in range(heads):
            own_prices[h] = prices[h] * np.float32(per_item[h::heads].any())
        for m in range(members):
            if not own_prices[:, m].any():
                continue
            for h in range(heads):
                a = (size + h * members + m) * _STEP
                for n in range(count):
                    raw[h * _STEP + n] = PT[a + n]
            exponentials(raw, bits, rooms[3])
            _add_member(
                m, Q, PT, bias, items, item_places, counted, per_item, own_prices, l2, count, rooms, bits,
                own, to_own, to_Q, to_PT, to_bias,
            )  # fmt: skip
            _shrink_users(m, dim, PT, per_user, own_prices, l2, count, to_PT)
        _add_back(to_PT, user_places, start, here, to_P)
