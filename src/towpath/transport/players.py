"""Who plays w and g, by the names in the settings."""

from towpath.data.interactions import Interactions
from towpath.device import device_of
from towpath.models.players import player_model, player_rng
from towpath.models.scorer import Scorer
from towpath.rng import Rng
from towpath.transport.critic import MarginCritic, ModelCritic
from towpath.transport.frozen import FrozenFeatures
from towpath.transport.lipschitz import Anchored, Control, GradientPenalty, MaxNorm
from towpath.transport.settings import TransportSettings
from towpath.transport.weights import MarginWeights, ModelWeights


def make_weights(
    scorer: Scorer, train: Interactions, settings: TransportSettings, rng: Rng
) -> MarginWeights | ModelWeights:
    """The weighting that the settings ask for."""
    if settings.players == "margin":
        return MarginWeights(settings.floor, settings.ceiling).to(device_of(scorer))
    model = player_model(settings.w, "w", scorer, train, rng)
    return ModelWeights(model, settings.floor, settings.ceiling)


def make_critic(
    scorer: Scorer, train: Interactions, settings: TransportSettings, rng: Rng
) -> MarginCritic | ModelCritic:
    """The critic that the settings ask for."""
    if settings.players == "margin":
        return MarginCritic()
    if settings.lipschitz == "frozen":
        model: Scorer = FrozenFeatures(scorer)
        model.initialise(train, player_rng(rng, "g"))
        model.to(device_of(scorer))
    else:
        model = player_model(settings.g, "g", scorer, train, rng)
    return ModelCritic(model, _control(settings), settings.learning_rate_g, settings.critic_range)


def _control(settings: TransportSettings) -> Control:
    kinds: dict[str, Control] = {
        "max-norm": MaxNorm(settings.row_norm),
        "gradient-penalty": GradientPenalty(),
        "frozen": Anchored(),
    }
    return kinds.get(settings.lipschitz, Control())
