"""Vectors of users and items from the training log alone, fixed before any model is looked at."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster.vq import kmeans2
from scipy.sparse.linalg import svds

Codes = NDArray[np.integer[Any]]
Values = NDArray[np.float64]

DIMENSIONS = 16
# Small cells: larger ones mix kinds of users, and what one kind clicks then stands in for another.
USERS_PER_CELL = 50
MOST_CELLS = 200


@dataclass(frozen=True)
class Representation:
    """Vectors of length one, or zero for who or what has no events: users (users, d), items (items, d)."""

    users: Values
    items: Values

    def pairs(self, users: Codes, items: Codes) -> Values:
        """One point for each pair: (n, 2 d)."""
        return np.concatenate([self.users[users], self.items[items]], axis=1)

    def cells(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """A cell for each user (users,): k-means on the vectors of users."""
        cells = max(1, min(MOST_CELLS, len(self.users) // USERS_PER_CELL))
        if cells == 1:
            return np.zeros(len(self.users), dtype=np.int64)
        # Distinct starting points: two equal ones would leave a cell empty.
        starts = np.unique(self.users[rng.permutation(len(self.users))[: 4 * cells]], axis=0)
        chosen = starts[rng.permutation(len(starts))[:cells]]
        with warnings.catch_warnings():  # a cell that ends up without users does no harm
            warnings.simplefilter("ignore", UserWarning)
            return kmeans2(self.users, chosen, minit="matrix", iter=20)[1].astype(np.int64)


def represent(users: Codes, items: Codes, shape: tuple[int, int], rng: np.random.Generator) -> Representation:
    """Truncated SVD of who took what; users, items: (n,) training events, shape: (users, items)."""
    matrix = sparse.csr_array((np.ones(len(users), dtype=np.float32), (users, items)), shape)
    dimensions = min(DIMENSIONS, min(shape) - 1)
    if dimensions < 1:
        return Representation(np.zeros((shape[0], 1)), np.zeros((shape[1], 1)))
    left, values, right = svds(matrix, k=dimensions, v0=rng.random(min(shape)).astype(np.float32))
    return Representation(_unit(left * values), _unit(right.T * values))


def _unit(raw: NDArray[np.floating[Any]]) -> Values:
    vectors = raw.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    # Below this is rounding: a user without events must not become a direction.
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 1e-6)
