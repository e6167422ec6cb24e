"""Rounds of the game that compiled loops can play."""

from torch import Tensor

from towpath.kernels.margin_game import MarginPairs, level_weights, line_slopes, usable
from towpath.training.optimiser import Optimiser
from towpath.transport.settings import TransportSettings
from towpath.transport.weights import MarginWeights, ModelWeights


def can_fuse(weights: MarginWeights | ModelWeights, settings: TransportSettings) -> bool:
    """Whether w and g see margins alone and move once each, in turn."""
    in_turn = (settings.schedule, settings.steps_w, settings.steps_g) == ("flat", 1, 1)
    exact = settings.measure == "normalised" and settings.relaxation == "hard"
    fixed_price = settings.target_distance is None
    margins = isinstance(weights, MarginWeights) and usable(weights.line.detach())
    return in_turn and exact and fixed_price and margins


def move_players(pairs: MarginPairs, weights: MarginWeights, optimiser: Optimiser, penalty: float) -> Tensor:
    """One move of g and one of w; returns the weights that f's risk then has: (b, k)."""
    line, bounds = weights.line, (weights.floor, weights.ceiling)
    slopes = line_slopes(pairs, line, bounds, penalty)
    if slopes is not None:  # else nothing is shown, and there is no distance to measure
        optimiser.apply_gradients({line: slopes})
    return level_weights(pairs, line, bounds)
