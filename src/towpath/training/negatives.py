"""The negatives of an epoch: uniform over items without an interaction, some from the top of the ranking."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.data.negatives import NegativeSampler
from towpath.models.scorer import Scorer
from towpath.ranking.snapshot import LiveRanking
from towpath.rng import Rng
from towpath.training.settings import TrainingSettings

# From positives (b,) and their users (b,) to both in one table, positives first: (b, 1 + negatives).
Draw = Callable[[NDArray[np.integer], NDArray[np.int64]], NDArray[np.int64]]


class TrainingNegatives:
    """Draws what the settings ask for.

    Some of the negatives may be hard: they come from the top of the scorer's current ranking, that is, from
    what it is about to show. The learner keeps that ranking up to date.
    """

    def __init__(
        self,
        train: Interactions,
        scorer: Scorer,
        settings: TrainingSettings,
        ranking: LiveRanking | None = None,
    ) -> None:
        self._settings = settings
        self._ranking = ranking or LiveRanking(scorer, train, shown=1, depth=settings.hard_negative_depth)
        self._sampler = NegativeSampler(train)
        self.exhausted = self._sampler.exhausted  # users who have interacted with everything

    def refresh(self) -> None:
        """Compute the ranking anew if hard negatives are drawn from it."""
        if self._settings.hard_negatives:
            self._ranking.refresh()

    def drawer(self, number: int, rng: Rng, name: str) -> Draw:
        """The draws of this epoch."""
        settings, begin = self._settings, 1 + self._settings.hard_negatives
        uniform, generator = rng.numpy(name + "negatives", number), rng.torch(name + "head", number)

        def draw(interacted: NDArray[np.integer], users: NDArray[np.int64]) -> NDArray[np.int64]:
            items = np.empty((len(users), 1 + settings.negatives), dtype=np.int64)
            items[:, 0] = interacted
            if settings.hard_negatives:
                ranking, who = self._ranking.current(), torch.from_numpy(users)
                items[:, 1:begin] = ranking.draw(
                    who, settings.hard_negatives, settings.hard_negative_depth, generator
                )
            self._sampler.fill(users, items, begin, uniform)
            return items

        return draw
