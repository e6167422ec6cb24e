"""Models that play next to the one that will be deployed: weights, critics, adversaries."""

from towpath.data.interactions import Interactions
from towpath.device import device_of
from towpath.models.registry import build
from towpath.models.scorer import Scorer
from towpath.rng import Rng


def player_model(name: str, player: str, scorer: Scorer, train: Interactions, rng: Rng) -> Scorer:
    """A filled model of its own for this player: the named one with its defaults, or another one like f.

    `scorer` is f; an empty name asks for its class and its settings. Batches are made for f: where the player
    wants to see more of a history than f does, f is shown it too, unless it is a model of sequences itself.
    """
    model = build(name, {}, scorer.sizes) if name else type(scorer)(scorer.settings, scorer.sizes)
    model.initialise(train, player_rng(rng, player))
    model.to(device_of(scorer))
    if not scorer.trains_on_sequences:
        scorer.history_length = max(scorer.history_length, model.history_length)
    return model


def player_rng(rng: Rng, player: str) -> Rng:
    """A root of randomness of its own, so that players do not start from the same numbers."""
    return rng.child("player", player)
