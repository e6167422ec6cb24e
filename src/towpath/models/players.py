"""Models that play next to the one that will be deployed: weights, critics, adversaries."""

from torch import nn

from towpath.data.interactions import Interactions
from towpath.device import device_of
from towpath.models.model_setting import ModelSetting
from towpath.models.registry import build
from towpath.models.scorer import Scorer
from towpath.rng import Rng


def player_model(name: ModelSetting, player: str, scorer: Scorer, train: Interactions, rng: Rng) -> Scorer:
    """A filled model of its own for this player: the named one with its defaults, or another one like f.

    The name may be a class; an empty one asks for the class and the settings of f, the `scorer`, which stays
    as it is.
    """
    model = build(name, {}, scorer.sizes) if name else type(scorer)(scorer.settings, scorer.sizes)
    model.initialise(train, player_rng(rng, player))
    return model.to(device_of(scorer))


def longest_history(*players: nn.Module) -> int:
    """As many of a user's latest items as any model among these players looks at."""
    models = (m for player in players for m in player.modules() if isinstance(m, Scorer))
    return max((model.history_length for model in models), default=0)


def player_rng(rng: Rng, player: str) -> Rng:
    """A root of randomness of its own, so that players do not start from the same numbers."""
    return rng.child("player", player)
