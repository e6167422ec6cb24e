"""The loops that numba compiles, once, and keeps on disk.

Those over many pairs do one part of `parts` (see `kernels.threads`). Sums may be reordered (`reassoc`) to use
vector instructions; the order is fixed when compiled and is the same for any number of parts, so the same
input gives the same floats.
"""

from typing import Any

import numpy as np
from numba import njit

from towpath.kernels.threads import SLOTS

_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, fastmath=_FAST, nogil=True)
def scores_and_norms(
    part: int, parts: int, P: Any, Q: Any, users: Any, items: Any, scores: Any, norms: Any
) -> None:
    """Fill scores and norms (b, k) from tables P and Q whose last column is the bias."""
    d, rows = P.shape[1] - 1, len(users)
    for r in range(rows * part // parts, rows * (part + 1) // parts):
        p = P[users[r]]
        length = p.dtype.type(0)
        for j in range(d):
            length += p[j] * p[j]
        for c in range(items.shape[1]):
            q = Q[items[r, c]]
            product = q[d] + p[d]
            own = length
            for j in range(d):
                product += p[j] * q[j]
                own += q[j] * q[j]
            scores[r, c] = product
            norms[r, c] = own


@njit(cache=True, fastmath=_FAST, nogil=True)
def user_gradients(
    part: int, parts: int, P: Any, Q: Any, users: Any, items: Any, by_score: Any, by_norm: Any, to_P: Any
) -> None:
    """Add to to_P, of the shape of P, what each pair sends to its user's row: s q + 2 n p, and s to the bias.

    A part looks through all rows for the users of its own slots, so that nobody else writes to them.
    """
    d, mask = P.shape[1] - 1, np.uint64(SLOTS - 1)
    first, end = np.uint64(SLOTS * part // parts), np.uint64(SLOTS * (part + 1) // parts)
    for r in range(len(users)):
        slot = np.uint64(users[r]) & mask
        if first <= slot and slot < end:
            p, to = P[users[r]], to_P[users[r]]
            charge = p.dtype.type(0)
            for c in range(items.shape[1]):
                q, s = Q[items[r, c]], by_score[r, c]
                charge += by_norm[r, c]
                for j in range(d):
                    to[j] += s * q[j]
                to[d] += s
            for j in range(d):
                to[j] += 2 * charge * p[j]


@njit(cache=True, fastmath=_FAST, nogil=True)
def item_gradients(
    part: int, parts: int, P: Any, Q: Any, users: Any, items: Any, by_score: Any, by_norm: Any, to_Q: Any
) -> None:
    """The same for the items' rows: s p + 2 n q, and s to the bias.

    An item occurs in many rows, so what its pairs charge for its length is summed first.
    """
    d, mask = P.shape[1] - 1, np.uint64(SLOTS - 1)
    first, end = np.uint64(SLOTS * part // parts), np.uint64(SLOTS * (part + 1) // parts)
    charges = np.zeros(len(Q), Q.dtype)
    for r in range(len(users)):
        p = P[users[r]]
        for c in range(items.shape[1]):
            item = items[r, c]
            slot = np.uint64(item) & mask
            if first <= slot and slot < end:
                to, s = to_Q[item], by_score[r, c]
                charges[item] += by_norm[r, c]
                for j in range(d):
                    to[j] += s * p[j]
                to[d] += s
    for item in range(len(Q)):
        if charges[item] != 0:
            q, to = Q[item], to_Q[item]
            for j in range(d):
                to[j] += 2 * charges[item] * q[j]


@njit(cache=True, nogil=True)
def gradients(
    part: int,
    parts: int,
    P: Any,
    Q: Any,
    users: Any,
    items: Any,
    by_score: Any,
    by_norm: Any,
    to_P: Any,
    to_Q: Any,
) -> None:
    """Both in one go: a thread that has been woken up should have enough to do."""
    user_gradients(part, parts, P, Q, users, items, by_score, by_norm, to_P)
    item_gradients(part, parts, P, Q, users, items, by_score, by_norm, to_Q)


@njit(cache=True, nogil=True)
def known_pairs(pairs: Any, users: Any, items: Any, found: Any) -> None:
    """Fill found (n,) with ones and zeros: whether each pair is among the `KnownPairs`."""
    # Without a branch in the loop: what is found is random, and every wrong guess would cost more than all.
    seven, three, one = np.uint64(7), np.uint64(3), np.uint8(1)
    for r in range(len(users)):
        slot = np.uint64(users[r] * pairs.n_items + items[r])
        if not pairs.exact:
            slot = (slot * pairs.spread) >> pairs.shift
        found[r] = (pairs.bits[slot >> three] >> np.uint8(slot & seven)) & one
    if not pairs.exact:
        _settle(pairs, users, items, found)


@njit(cache=True, nogil=True)
def _settle(pairs: Any, users: Any, items: Any, found: Any) -> None:
    """Turn what the filter takes for known into what is: a search among the keys of the user."""
    for r in range(len(users)):
        if found[r]:
            key = users[r] * pairs.n_items + items[r]
            low, high = pairs.starts[users[r]], pairs.starts[users[r] + 1]
            while low < high:
                middle = (low + high) >> 1
                if pairs.keys[middle] < key:
                    low = middle + 1
                else:
                    high = middle
            found[r] = low < pairs.starts[users[r] + 1] and pairs.keys[low] == key


@njit(cache=True, nogil=True)
def draw_unknown(pairs: Any, users: Any, rng: Any, rounds: int, items: Any) -> Any:
    """Fill items (b, k) with draws from the catalogue, known ones redrawn, so many rounds in all.

    Returns the places (row * k + column) that are still open then. The draws are numpy's own, in this order:
    all places, then those that are open, again and again.
    """
    count, drawn = items.shape[1], items.ravel()
    places, owners = np.arange(len(drawn)), np.empty(len(drawn), np.int64)
    for place in places:
        owners[place] = users[place // count]
    found = np.empty(len(drawn), np.uint8)
    for _ in range(rounds):
        fresh = rng.integers(0, pairs.n_items, len(places), dtype=np.int32)
        known_pairs(pairs, owners, fresh, found)
        left = 0
        for n in range(len(places)):
            drawn[places[n]] = fresh[n]
            places[left], owners[left] = places[n], owners[n]
            left += found[n]
        places, owners = places[:left], owners[:left]
        if left == 0:
            break
    return places
