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
def known_pairs(
    keys: Any,
    starts: Any,
    bits: Any,
    shift: Any,
    spread: Any,
    n_items: Any,
    users: Any,
    items: Any,
    found: Any,
) -> None:
    """Fill found (n,): whether user * n_items + item is among the sorted keys; starts are those of users."""
    seven, three = np.uint64(7), np.uint64(3)
    for r in range(len(users)):
        key = users[r] * n_items + items[r]
        slot = (np.uint64(key) * spread) >> shift
        found[r] = False
        if (bits[slot >> three] >> (slot & seven)) & np.uint64(1):
            low, high = starts[users[r]], starts[users[r] + 1]
            while low < high:
                middle = (low + high) >> 1
                if keys[middle] < key:
                    low = middle + 1
                else:
                    high = middle
            found[r] = low < starts[users[r] + 1] and keys[low] == key
