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


@njit(cache=True, nogil=True, error_model="numpy")
def first_of_catalogue(user: Any, item: Any, first: Any) -> None:
    """Fill first (b n, h) with relu(user + item) of every user with every item: (b, h) and (n, h)."""
    zero = first.dtype.type(0)
    for r in range(len(user)):
        u = user[r]
        for c in range(len(item)):
            i, to = item[c], first[np.uint64(r * len(item) + c)]
            for j in range(len(u)):
                x = u[j] + i[j]
                to[j] = x if x > zero else zero


@njit(cache=True, nogil=True, error_model="numpy")
def relu_after_bias(values: Any, bias: Any) -> None:
    """Replace the values (m, h), pair after pair, by relu(values + bias), bias (h,)."""
    zero = values.dtype.type(0)
    for n in range(len(values)):
        row = values[n]
        for j in range(len(bias)):
            x = row[j] + bias[j]
            row[j] = x if x > zero else zero


@njit(cache=True, fastmath={"reassoc", "contract"}, nogil=True, error_model="numpy")
def outputs_by_pair(values: Any, bias: Any, weight: Any, last_bias: Any, scores: Any) -> None:
    """Fill scores (m,) with <weight, relu(values + bias)> + last_bias, from values (m, h) by pairs."""
    zero = values.dtype.type(0)
    for n in range(len(values)):
        row, score = values[n], last_bias
        for j in range(len(bias)):
            x = row[j] + bias[j]
            score += weight[j] * (x if x > zero else zero)
        scores[n] = score


@njit(cache=True, fastmath={"contract"}, nogil=True, error_model="numpy")
def outputs_by_unit(values: Any, bias: Any, weight: Any, last_bias: Any, scores: Any) -> None:
    """The same from values (h, m) by units."""
    zero = values.dtype.type(0)
    for n in range(len(scores)):
        scores[n] = last_bias
    for j in range(len(values)):
        row, c, w = values[j], bias[j], weight[j]
        for n in range(len(scores)):
            x = row[n] + c
            scores[n] += w * (x if x > zero else zero)
