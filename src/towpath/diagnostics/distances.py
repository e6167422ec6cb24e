"""How far what a model would show lies from what the log has, in vectors that the model has no say in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from towpath.diagnostics.critic import fitted_critic_distance
from towpath.diagnostics.representation import Representation
from towpath.diagnostics.wasserstein import critic_distance, sample_wasserstein
from towpath.rng import Rng
from towpath.training.weighed_pairs import PairValues

Codes = NDArray[np.integer[Any]]
Values = NDArray[np.float64]

SAMPLE = 500


@dataclass(frozen=True)
class Pairs:
    """Pairs of users and items, (n,) each, with the weight of each; all alike without weights."""

    users: Codes
    items: Codes
    weights: Values | None = None

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
    says anything. Critics are asked about the same samples, and none can exceed the exact distance: how close
    they come says how well a critic sees it.
    """

    log_to_itself: float
    log_to_recommended: float  # P to P_f
    log_to_weighted: float | None  # P to P_w, for a transport game
    weighted_to_recommended: float | None  # P_w to P_f
    critic: Mapping[str, float]  # the same by a network that was fitted for the purpose
    own_critic: Mapping[str, float] | None  # by the g of the run; None where it has none to ask


@dataclass(frozen=True)
class Measuring:
    """What distances are measured in, and by whom besides."""

    vectors: Representation
    rng: Rng
    own_critic: PairValues | None = None


def measure_distances(log: Pairs, recommended: Pairs, weighted: Pairs | None, by: Measuring) -> Distances:
    """All distances, each from samples of its own."""
    compared = {"log_to_itself": (log, log), "log_to_recommended": (log, recommended)}
    if weighted is not None:
        compared["log_to_weighted"] = (log, weighted)
        compared["weighted_to_recommended"] = (weighted, recommended)
    draw = by.rng.numpy("diagnose", "distances")
    samples = {
        name: (first.sample(SAMPLE, draw), second.sample(SAMPLE, draw))
        for name, (first, second) in compared.items()
    }
    points = {
        name: (by.vectors.pairs(one.users, one.items), by.vectors.pairs(other.users, other.items))
        for name, (one, other) in samples.items()
    }
    exact = {name: sample_wasserstein(*pair) for name, pair in points.items()}
    fitted = {
        name: fitted_critic_distance(one, other, by.rng.child(name)) for name, (one, other) in points.items()
    }
    own = by.own_critic and {name: _ask(by.own_critic, samples[name], points[name]) for name in samples}
    return Distances(
        exact["log_to_itself"],
        exact["log_to_recommended"],
        exact.get("log_to_weighted"),
        exact.get("weighted_to_recommended"),
        fitted,
        own,
    )


def _ask(critic: PairValues, samples: tuple[Pairs, Pairs], points: tuple[Values, Values]) -> float:
    """What a run's own critic makes of the distance between two samples."""
    codes = [(one.users.astype(np.int64), one.items.astype(np.int64)) for one in samples]
    values = np.concatenate([critic(users, items) for users, items in codes])
    together = np.concatenate(points)
    first = np.repeat([1 / SAMPLE, 0], SAMPLE)
    return critic_distance(values, first, first[::-1], cdist(together, together))
