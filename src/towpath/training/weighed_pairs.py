"""Training pairs with the weights that a method has learned for them, and what it says of any pair."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

# Something about pairs, from their users (n,) and items (n,): (n,).
PairValues = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]

# Enough to see how weights lie; more would only take longer.
MOST_PAIRS = 60_000


@dataclass(frozen=True)
class WeighedPairs:
    """Pairs of a user and an item with the weight that a method gives them; all columns (n,).

    Weights have mean one over the pairs in the mask, and are one elsewhere. A margin is the score of f
    minus that of the last item that the user would be shown: with zero or more the pair would be shown.
    """

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    interacted: NDArray[np.bool_]  # the label
    reweight_mask: NDArray[np.bool_]  # whether w reweighs this pair
    scores: NDArray[np.float64]
    margins: NDArray[np.float64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Whether f would show the pair, were it not interacted with already."""
        return self.margins >= 0

    def where(self, keep: NDArray[np.bool_]) -> "WeighedPairs":
        """The pairs where `keep` is true."""
        return WeighedPairs(**{field.name: getattr(self, field.name)[keep] for field in fields(self)})


def join_weighed(found: Sequence[WeighedPairs]) -> WeighedPairs:
    """All pairs as one table, with mean weight one over the mask."""
    joined = {f.name: np.concatenate([getattr(one, f.name) for one in found]) for f in fields(WeighedPairs)}
    reweight_mask, raw = joined["reweight_mask"], joined["weights"]
    joined["weights"] = (
        np.where(reweight_mask, raw / raw[reweight_mask].mean(), 1.0)
        if reweight_mask.any()
        else np.ones(len(raw))
    )
    return WeighedPairs(**joined)
