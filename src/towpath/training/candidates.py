"""A sample of the catalogue for each batch, which the softmax goes over instead of all items."""

import numpy as np
import torch
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.kernels.softmax_loss import Candidates

# Chances grow with this power of how often an item is in the training data.
POPULARITY_POWER = 0.75


class CandidateSampler:
    """Draws `k` different items at a time; popular ones more often, the most popular perhaps always."""

    def __init__(self, train: Interactions, k: int, device: torch.device) -> None:
        counts = np.bincount(train.items, minlength=train.n_items)
        self.chances = inclusion_chances(np.power(counts + 1, POPULARITY_POWER, dtype=np.float64), k)
        self._until, self._k, self._device = np.cumsum(self.chances), k, device
        self._log_chances = np.log(self.chances).astype(np.float32)

    def draw(self, generator: np.random.Generator) -> Candidates:
        """A new sample.

        Systematic: chances lie end to end on a line of length k, and of every unit of it the item at one
        random place, the same in all, is taken. So each item is in with exactly its chance, and none twice.
        """
        places = np.searchsorted(self._until, generator.random() + np.arange(self._k), side="right")
        places = np.minimum(places, len(self.chances) - 1)  # rounding at the very end
        arrays = (places, self._log_chances[places])
        return Candidates(*(torch.from_numpy(a).to(self._device) for a in arrays))


def inclusion_chances(weights: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Chances (n,) to be among k of n items that sum to k, in proportion to positive weights but at most 1.

    >>> inclusion_chances(np.array([6.0, 1.0, 1.0]), 2)
    array([1. , 0.5, 0.5])
    """
    chances = np.minimum(1.0, weights * (k / weights.sum()))
    while (missing := k - chances.sum()) > 1e-9 * k:
        free = chances < 1
        chances[free] = np.minimum(1.0, chances[free] * (1 + missing / chances[free].sum()))
    return chances
