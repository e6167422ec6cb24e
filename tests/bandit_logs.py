"""Small bandit logs whose truth is known."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from towpath.bandit.log import BanditLog
from towpath.data.vocabulary import Vocabulary
from towpath.rng import Rng

Values = NDArray[np.float64]


def ids(n: int) -> Vocabulary:
    return Vocabulary(pa.array([str(i) for i in range(n)], pa.string()))


@dataclass(frozen=True)
class BanditWorld:
    """Chances of showing and of clicking, by position and action."""

    logging: Values  # (positions, actions)
    click: Values  # (positions, actions)

    def value(self, policy: Values) -> float:
        """What a policy (positions, actions) earns in a row, positions being equally frequent."""
        return float((policy * self.click).sum(axis=1).mean())

    def log(self, n: int, rng: np.random.Generator) -> BanditLog:
        k, a = self.logging.shape
        positions = rng.integers(k, size=n)
        cumulative = self.logging.cumsum(axis=1)[positions]
        actions = np.minimum((rng.random(n)[:, None] > cumulative).sum(axis=1), a - 1)
        rewards = (rng.random(n) < self.click[positions, actions]).astype(np.float64)
        return BanditLog(
            actions=actions,
            positions=positions,
            rewards=rewards,
            item_ids=ids(a),
            position_ids=tuple(str(p + 1) for p in range(k)),
            propensities=self.logging[positions, actions],
        )


def small_world(seed: int = 0, positions: int = 2, actions: int = 5) -> BanditWorld:
    rng = Rng(seed).numpy("world")
    logging = rng.dirichlet(np.full(actions, 2.0), size=positions) * 0.9 + 0.1 / actions
    return BanditWorld(logging, rng.uniform(0.1, 0.6, size=(positions, actions)))
