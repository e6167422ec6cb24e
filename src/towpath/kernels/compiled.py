"""The loops that numba compiles, once, and keeps on disk.

Sums may be reordered (`reassoc`) so that they can use vector instructions; the order is fixed when compiled,
so the same input gives the same floats.
"""

from typing import Any

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, fastmath=_FAST, nogil=True)
def scores_and_norms(P: Any, Q: Any, users: Any, items: Any, scores: Any, norms: Any) -> None:
    """Fill scores and norms (b, k) from tables P and Q whose last column is the bias."""
    d = P.shape[1] - 1
    for r in range(items.shape[0]):
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
def gradients(
    P: Any, Q: Any, users: Any, items: Any, by_score: Any, by_norm: Any, to_users: Any, to_items: Any
) -> None:
    """Add the gradients of the rows to to_users and to_items, which have the shapes of P and Q."""
    d = P.shape[1] - 1
    for r in range(items.shape[0]):
        p, dp = P[users[r]], to_users[users[r]]
        for c in range(items.shape[1]):
            q, dq = Q[items[r, c]], to_items[items[r, c]]
            s, n = by_score[r, c], 2 * by_norm[r, c]
            for j in range(d):
                dp[j] += s * q[j] + n * p[j]
                dq[j] += s * p[j] + n * q[j]
            dp[d] += s
            dq[d] += s


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
def keep_known(pairs: Any, users: Any, fresh: Any, places: Any, items: Any) -> int:
    """How many of the `fresh` items (n,) for these users and places are known; all are written to `items`.

    Users and places of the known ones are moved to the front of their arrays, in the same order.
    """
    found = np.empty(len(fresh), np.uint8)
    known_pairs(pairs, users[: len(fresh)], fresh, found)
    left = 0
    for n in range(len(fresh)):
        items[places[n]] = fresh[n]
        places[left], users[left] = places[n], users[n]
        left += found[n]
    return left
