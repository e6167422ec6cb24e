"""What a trained method says of pairs: the weights it has learned, how they lie, and its critic."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_named
from towpath.models.scorer import Scorer
from towpath.rng import Rng
from towpath.stats.estimate import Estimate
from towpath.training.task import TrainingTask
from towpath.training.weighed_pairs import PairValues, WeighedPairs

# The median of what some pairs are close in, and their mean weight.
Bin = tuple[float, Estimate]


def learns_weights(recipe: Recipe) -> bool:
    """Whether the method of this recipe learns weights of training pairs."""
    return method_named(recipe.method).weigh_pairs is not None


def weigh_pairs(
    scorer: Scorer, auxiliary_state: Mapping[str, Tensor], train: Interactions, recipe: Recipe
) -> WeighedPairs:
    """Training pairs, with the weights that the trained method gives them under the trained scorer.

    `auxiliary_state` is what the fit kept of the other players. The pairs are drawn like those of an epoch,
    positives and negatives in the same proportions, from generators of their own.
    """
    method = method_named(recipe.method)
    if method.weigh_pairs is None:
        raise ConfigError(f"The method {method.name!r} has no w whose weights could be looked at.")
    return method.weigh_pairs(_task(scorer, train, recipe), recipe.resolve().method, auxiliary_state)


def critic_values(
    scorer: Scorer, auxiliary_state: Mapping[str, Tensor], train: Interactions, recipe: Recipe
) -> PairValues | None:
    """The critic that the trained method has kept; None where it has none to ask about any pair."""
    ask = method_named(recipe.method).critic_values
    if ask is None:
        return None
    return ask(_task(scorer, train, recipe), recipe.resolve().method, auxiliary_state)


def _task(scorer: Scorer, train: Interactions, recipe: Recipe) -> TrainingTask:
    rng = Rng(recipe.seed).child("diagnostics", "weights")
    return TrainingTask(scorer, train, recipe.resolve().training, rng)


def binned(x: NDArray[np.number], weights: NDArray[np.float64], bins: int = 20) -> list[Bin]:
    """The pairs in `bins` runs of about equal size along x, both (n,); equal x are never torn apart."""
    edges = np.unique(np.quantile(x, np.linspace(0, 1, bins + 1))[1:-1])
    place = np.searchsorted(edges, x, side="left")
    return [_bin(x[place == one], weights[place == one]) for one in np.unique(place)]


def _bin(x: NDArray[np.number], weights: NDArray[np.float64]) -> Bin:
    low, high = (float(end) for end in np.quantile(weights, [0.1, 0.9]))
    weight = Estimate(float(weights.mean()), low, high, len(x), "middle 80 % of the pairs", 0.8)
    return float(np.median(x)), weight
