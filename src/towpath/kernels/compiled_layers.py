"""Compiled loops around the layers of a perceptron on pairs: what is looked up, and what is handed back."""

from typing import Any

import numpy as np

from towpath.kernels.jit import njit


@njit(cache=True, nogil=True, error_model="numpy")
def first_activations(user: Any, item: Any, places: Any, first: Any) -> None:
    """Fill first (b k, h) with relu(user + item) of all pairs, from parts (b, h) and (n, h).

    places (b, k) are rows of item.
    """
    width, zero = places.shape[1], first.dtype.type(0)
    for r in range(len(places)):
        u = user[r]
        for c in range(width):
            i, to = item[np.uint64(places[r, c])], first[np.uint64(r * width + c)]
            for j in range(len(u)):
                x = u[j] + i[j]
                to[j] = x if x > zero else zero


@njit(cache=True, nogil=True, error_model="numpy")
def add_to_rows(first: Any, slopes: Any, places: Any, to_user: Any, to_item: Any) -> None:
    """Add the slopes (b k, h) of the first activations to the rows of to_user (b, h) and to_item (n, h).

    Where an activation is zero, nothing comes through.
    """
    width, zero = places.shape[1], first.dtype.type(0)
    for r in range(len(places)):
        to = to_user[r]
        for c in range(width):
            n = np.uint64(r * width + c)
            on, slope, other = first[n], slopes[n], to_item[np.uint64(places[r, c])]
            for j in range(len(to)):
                s = slope[j] if on[j] > zero else zero
                to[j] += s
                other[j] += s
