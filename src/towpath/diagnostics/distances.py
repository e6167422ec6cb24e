"""How far what a model would show lies from what the log has, in vectors that the model has no say in."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.diagnostics.representation import Representation
from towpath.diagnostics.wasserstein import sample_wasserstein

Codes = NDArray[np.integer[Any]]

SAMPLE = 500


@dataclass(frozen=True)
class Pairs:
    """Pairs of users and items, (n,) each, with the weight of each; all alike without weights."""

    users: Codes
    items: Codes
    weights: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.users)

    def sample(self, size: int, rng: np.random.Generator) -> "Pairs":
        """Pairs drawn with replacement, by their weights."""
        chances = None if self.weights is None else self.weights / self.weights.sum()
        drawn = rng.choice(len(self), size=size, p=chances)
        return Pairs(self.users[drawn], self.items[drawn])


@dataclass(frozen=True)
class Distances:
    """Wasserstein-1 distances between samples of SAMPLE pairs; vectors have length one on each side.

    Samples of one and the same distribution have a distance as well: `log_to_itself`. Only what is beyond it
    says anything.
    """

    log_to_itself: float
    log_to_recommended: float  # P to P_f
    log_to_weighted: float | None = None  # P to P_w, for a transport game
    weighted_to_recommended: float | None = None  # P_w to P_f


def measure_distances(
    log: Pairs,
    recommended: Pairs,
    weighted: Pairs | None,
    vectors: Representation,
    rng: np.random.Generator,
) -> Distances:
    """All distances, each from samples of its own."""

    def distance(first: Pairs, second: Pairs) -> float:
        samples = (pairs.sample(SAMPLE, rng) for pairs in (first, second))
        return sample_wasserstein(*(vectors.pairs(one.users, one.items) for one in samples))

    return Distances(
        distance(log, log),
        distance(log, recommended),
        None if weighted is None else distance(log, weighted),
        None if weighted is None else distance(weighted, recommended),
    )
