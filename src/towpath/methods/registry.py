"""All methods by name: plain training, transport, the baselines, and those of installed packages.

A package registers a method by an entry point in the group `towpath.methods`; see docs/extending.md.
"""

from typing import Any

from towpath.bandit.learning import (
    CounterfactualLearner,
    DirectLearner,
    DirectSettings,
    DoublyRobustPolicyLearner,
    DoublyRobustPolicySettings,
    NormPoemSettings,
    PoemSettings,
    PolicySettings,
    SnipsSettings,
)
from towpath.baselines.adversarial import AdversarialLearner, AdversarialSettings
from towpath.baselines.causal_embedding import (
    CausalEmbeddingLearner,
    CausalEmbeddingSettings,
    refuse_whole_catalogue,
)
from towpath.baselines.conservative import ConservativeSettings, conservative_risk
from towpath.baselines.doubly_robust import DoublyRobustLearner, DoublyRobustSettings, refuse_catalogue
from towpath.baselines.esmm import CounterfactualSettings, escm2_risk, esmm_risk
from towpath.baselines.exposure import ExposureLearner, ExposureSettings, refuse_batches
from towpath.baselines.imitation import imitation_risk
from towpath.baselines.impression_risk import NoSettings, by_risk, refuse_hard_negatives
from towpath.baselines.inverse_propensity import InversePropensityLearner, InversePropensitySettings
from towpath.baselines.shown import shown_risk
from towpath.errors import ConfigError
from towpath.methods import grids
from towpath.methods.method import Method
from towpath.plugins import find
from towpath.training.plain import PlainLearner, PlainSettings
from towpath.transport.learner import transport_learner
from towpath.transport.settings import TransportSettings, refuse_no_game
from towpath.transport.weighing import critic_values, weigh_pairs

AnyMethod = str | Method[Any]  # a name, or a method of the user's own, whatever its settings

GROUP = "towpath.methods"

# Settings on impressions, those of mf, chosen by validation in worlds of their own, each method with the same
# budget (benchmarks.impressions_choice). Methods that start from shown pairs add few others.
PLAIN = {"learning_rate": 0.01, "l2": 0.01, "negatives": 10}
IPW = {"learning_rate": 0.01, "l2": 0.02, "negatives": 10, "floor": 0.3, "power": 0.25}
EXPOSURE = {"ridge_users": 30.0, "ridge_items": 3.0, "prior_weight": 0.0, "known_exposure": True}
SHOWN = {"learning_rate": 0.003, "l2": 0.04, "negatives": 3}
IMITATION = {"learning_rate": 0.003, "l2": 0.02, "negatives": 3}
ESCM2 = {"learning_rate": 0.01, "l2": 0.02, "negatives": 3}
CONSERVATIVE = {"learning_rate": 0.01, "l2": 0.04, "negatives": 3}
# Of networks: a quick look at a few penalties, by validation Hit in one world of seed 11.
NETWORK = {"l2": 0.02}

_ALL: tuple[Method[Any], ...] = (  # each has settings of its own
    Method(
        "plain",
        PlainSettings,
        PlainLearner,
        on_impressions={"mf": PLAIN, "ncf": NETWORK},
        grid=grids.FIT,
        softmax=True,
        value_weights=True,
        closed_form=True,
    ),
    Method(
        "transport",
        TransportSettings,
        transport_learner,
        # What f is about to show is rarely among uniform negatives, so one in three comes from there.
        training={"hard_negatives": 1},
        # Another model than mf learns from the library: its halves need no start, nor the library its epochs.
        on_impressions={"ncf": {"pretrain_epochs": 0}, "attention": {"epochs": 100}},
        refuse=refuse_no_game,
        grid={**grids.FIT, **grids.TRANSPORT},
        # Only the game has players, and where there are impressions it must be asked for.
        players={player: {"players": "models", "solver": "game"} for player in ("w", "g")},
        weigh_pairs=weigh_pairs,
        critic_values=critic_values,
    ),
    Method(
        "ipw",
        InversePropensitySettings,
        InversePropensityLearner,
        on_impressions={"mf": IPW},
        grid={**grids.FIT, **grids.IPW},
    ),
    Method(
        "expomf",
        ExposureSettings,
        ExposureLearner,
        on_impressions={"mf": EXPOSURE},
        refuse=refuse_batches,
        grid=grids.EXPOSURE,
        models=("mf",),
    ),
    Method(
        "adversarial",
        AdversarialSettings,
        AdversarialLearner,
        grid={**grids.FIT, **grids.ADVERSARIAL},
        players={"g": {}},
    ),
    Method(
        "causal-embedding",
        CausalEmbeddingSettings,
        CausalEmbeddingLearner,
        refuse=refuse_whole_catalogue,
        grid={**grids.FIT, **grids.CAUSAL_EMBEDDING},
        models=("mf",),
    ),
    Method(
        "doubly-robust",
        DoublyRobustSettings,
        DoublyRobustLearner,
        refuse=refuse_catalogue,
        grid={**grids.FIT, **grids.DOUBLY_ROBUST},
        players={"imputation": {}},
    ),
    Method(
        "shown",
        NoSettings,
        by_risk(shown_risk),
        SHOWN,
        refuse=refuse_hard_negatives,
        grid=grids.FIT,
        needs_impressions=True,
    ),
    Method(
        "imitation", NoSettings, by_risk(imitation_risk), IMITATION, grid=grids.FIT, needs_impressions=True
    ),
    Method(
        "esmm", NoSettings, by_risk(esmm_risk, heads=2), IMITATION, grid=grids.FIT, needs_impressions=True
    ),
    Method(
        "escm2",
        CounterfactualSettings,
        by_risk(escm2_risk, heads=2),
        ESCM2,
        grid={**grids.FIT, "counterfactual": (0.01, 0.1, 0.3, 1.0)},
        needs_impressions=True,
    ),
    Method(
        "conservative",
        ConservativeSettings,
        by_risk(conservative_risk),
        CONSERVATIVE,
        grid={**grids.FIT, "conservatism": (0.1, 0.3, 1.0, 3.0)},
        needs_impressions=True,
    ),
    Method("bandit-ips", PolicySettings, CounterfactualLearner, grid=grids.BANDIT, needs_impressions=True),
    Method("bandit-snips", SnipsSettings, CounterfactualLearner, grid=grids.BANDIT, needs_impressions=True),
    Method("poem", PoemSettings, CounterfactualLearner, grid=grids.POEM, needs_impressions=True),
    Method("norm-poem", NormPoemSettings, CounterfactualLearner, grid=grids.POEM, needs_impressions=True),
    Method("bandit-dm", DirectSettings, DirectLearner, grid=grids.FIT, needs_impressions=True),
    Method(
        "bandit-dr",
        DoublyRobustPolicySettings,
        DoublyRobustPolicyLearner,
        grid=grids.BANDIT,
        needs_impressions=True,
    ),
)

METHODS: dict[str, Method[Any]] = {method.name: method for method in _ALL}


def method_named(method: AnyMethod) -> Method[Any]:
    """The method of this name, or the method itself."""
    found = find("method", method, METHODS, GROUP) if isinstance(method, str) else method
    if not isinstance(found, Method):
        raise ConfigError(f"A method is a name or a towpath.methods.method.Method, and {found!r} was given.")
    return found


def method_name(method: AnyMethod) -> str:
    """The name under which a method is known."""
    return method if isinstance(method, str) else method_named(method).name
