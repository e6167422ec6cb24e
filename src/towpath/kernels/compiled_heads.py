"""The loop over pairs, members and heads that numba compiles, once, and keeps on disk."""

from typing import Any

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}


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
    groups: Any,
    prices: Any,
    l2: Any,
    to_P: Any,
    to_Q: Any,
    to_bias: Any,
) -> None:
    """Add to to_P, to_Q and to_bias what every pair sends there, through every head of every member.

    Shapes as in `kernels.heads`. A member's part of a row is its vector, then one bias for each head.
    """
    members, heads = prices.shape
    width = P.shape[1] // members
    d = width - heads
    one = np.float32(1)
    for r in range(len(users)):
        u, to_u = np.uint64(users[r]), np.uint64(user_places[r])
        for m in range(members):
            first = m * width
            p, to_p = P[u, first : first + width], to_P[to_u, first : first + width]
            w = weights[groups[m], r]
            for c in range(items.shape[1]):
                charge, slope = np.float32(0), np.float32(0)
                for h in range(heads):
                    charge += prices[m, h] * w[c, h]
                if charge == 0:
                    continue
                q = Q[np.uint64(items[r, c]), first : first + width]
                to_q = to_Q[np.uint64(item_places[r, c]), first : first + width]
                product = np.float32(0)
                for j in range(d):
                    product += p[j] * q[j]
                for h in range(heads):
                    price = prices[m, h] * w[c, h]
                    if price != 0:
                        logit = product + p[d + h] + q[d + h] + bias[m, h]
                        s = price * (one / (one + np.exp(-logit)) - targets[r, c, h])
                        slope += s
                        to_p[d + h] += s
                        to_q[d + h] += s
                        to_bias[m, h] += s
                shrink = 2 * l2[m] * charge
                for j in range(d):
                    to_p[j] += slope * q[j] + shrink * p[j]
                    to_q[j] += slope * p[j] + shrink * q[j]
