"""The loop over a catalogue that numba compiles, once, and keeps on disk."""

from typing import Any

import numpy as np

from towpath.kernels.jit import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def rank_catalogue(
    vector: Any, items: Any, biases: Any, hidden: Any, scores: Any, values: Any, places: Any
) -> None:
    """Fill scores (n,), and values and places (k,) of the best; shapes as in `kernels.catalogue`.

    Four rows of `items` at a time: the scores are then read and written a quarter as often.
    """
    d, n, k = len(items), len(scores), len(values)
    for i in range(n):
        scores[i] = biases[i] + vector[d]
    for j in range(0, d - 3, 4):
        a, b, c, e = vector[j], vector[j + 1], vector[j + 2], vector[j + 3]
        for i in range(n):
            scores[i] += a * items[j, i] + b * items[j + 1, i] + c * items[j + 2, i] + e * items[j + 3, i]
    for j in range(d - d % 4, d):
        for i in range(n):
            scores[i] += vector[j] * items[j, i]
    for h in range(len(hidden)):
        scores[hidden[h]] = -np.inf
    for i in range(n):
        if i < k or scores[i] > values[k - 1]:
            at = min(i, k - 1)
            while at > 0 and values[at - 1] < scores[i]:
                values[at], places[at] = values[at - 1], places[at - 1]
                at -= 1
            values[at], places[at] = scores[i], i
