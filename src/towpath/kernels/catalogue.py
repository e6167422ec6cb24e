"""A list for one user in one pass: scores of the whole catalogue, hidden items, the best few.

Compiled by numba where it is installed; callers have a version in numpy for where it is not.
"""

import numpy as np
from numpy.typing import NDArray

from towpath.kernels.available import AVAILABLE

Floats = NDArray[np.float32]
# The best are kept in order as they come; longer lists are better sorted.
MOST = 64


def usable(k: int) -> bool:
    """Whether the kernel makes lists of this length."""
    return AVAILABLE and k <= MOST


def rank_catalogue(
    vector: Floats, items: Floats, biases: Floats, hidden: NDArray[np.int32], k: int
) -> tuple[Floats, list[float], list[int]]:
    """All scores, minus infinity where hidden, and the k best of them with their places.

        score_i = <vector, items_i> + biases_i + b

    vector: (d + 1,), b in the last place. items: (d, n). biases: (n,). Among equal scores the lower place
    comes first.
    """
    from towpath.kernels import compiled_catalogue

    scores, values, places = np.empty_like(biases), np.empty(k, np.float32), np.empty(k, np.int64)
    compiled_catalogue.rank_catalogue(vector, items, biases, hidden, scores, values, places)
    return scores, values.tolist(), places.tolist()
