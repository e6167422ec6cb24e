"""The impressions of a batch, and how much each counts for every head and user.

Compiled by numba where it is installed; without it numpy does the same, with the same numbers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from towpath.kernels.available import AVAILABLE

HEADS = 3  # e, r and c: likeness, relevance and click


class ImpressionColumns(NamedTuple):
    """A log of impressions, ordered by user."""

    users: NDArray[np.int64]  # (n,) codes
    items: NDArray[np.int64]  # (n,) codes
    clicks: NDArray[np.float32]  # (n,) 0 or 1
    chosen: NDArray[np.float32]  # (n,) 0 or 1: whether e and c learn from it


class ImpressionRows(NamedTuple):
    """Some of its rows, in ascending order."""

    users: NDArray[np.int64]  # (b,)
    items: NDArray[np.int64]  # (b, 1)
    targets: NDArray[np.float32]  # (b, 1, H) what each head should say: 1, or for r whether it was clicked
    counts: NDArray[np.float32]  # (b, 1, H) chosen; 1; clicked and chosen
    once: NDArray[np.int64]  # (m,) the different users
    per_user: NDArray[np.float32]  # (H, m) their counts, added up


def impression_rows(log: ImpressionColumns, rows: NDArray[np.int64]) -> ImpressionRows:
    """These rows (b,) of the log."""
    if not AVAILABLE:
        return impression_rows_plainly(log, rows)
    from towpath.kernels import compiled_heads

    size = len(rows)
    found = ImpressionRows(
        np.empty(size, np.int64),
        np.empty((size, 1), np.int64),
        np.empty((size, 1, HEADS), np.float32),
        np.empty((size, 1, HEADS), np.float32),
        np.empty(size, np.int64),
        np.zeros((HEADS, size), np.float32),
    )
    users = compiled_heads.fill_rows(*log, rows, *found)
    return found._replace(once=found.once[:users], per_user=found.per_user[:, :users])


def impression_rows_plainly(log: ImpressionColumns, rows: NDArray[np.int64]) -> ImpressionRows:
    """The same by numpy."""
    users, clicks, chosen = log.users[rows], log.clicks[rows], log.chosen[rows]
    targets, counts = np.ones((2, len(rows), 1, HEADS), np.float32)
    targets[:, 0, 1] = clicks
    counts[:, 0, 0], counts[:, 0, 2] = chosen, clicks * chosen
    first = np.flatnonzero(np.append(True, users[1:] != users[:-1]))
    per_user = np.add.reduceat(counts[:, 0], first).T
    return ImpressionRows(users, log.items[rows][:, None], targets, counts, users[first], per_user)
