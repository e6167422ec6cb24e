"""All methods by name: plain training, transport and the baselines; one line adds the next."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

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
from towpath.baselines.impression_risk import ImpressionRiskLearner, NoSettings
from towpath.baselines.inverse_propensity import InversePropensityLearner, InversePropensitySettings
from towpath.baselines.shown import shown_risk
from towpath.data.interactions import Interactions
from towpath.errors import ConfigError, unknown_name
from towpath.models.factorization import Factorization
from towpath.models.headed import with_heads
from towpath.models.scorer import Scorer, Settings
from towpath.rng import Rng
from towpath.training.loop import Learner
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.transport.game import TransportLearner
from towpath.transport.impressions.learner import ImpressionLearner
from towpath.transport.impressions.tower import TowerLearner
from towpath.transport.settings import TransportSettings


class PlainSettings(Settings):
    """Plain training has no settings beyond those of the fit loop."""


@dataclass(frozen=True)
class Task:
    """What a method is given: the model to train, what to train it on, and how."""

    scorer: Scorer
    train: Interactions
    training: TrainingSettings
    rng: Rng


@dataclass(frozen=True)
class Method:
    """How a method is set and how it makes a learner out of a task.

    `training` holds defaults of the fit loop that differ for this method; `refuse` raises if the settings of
    the loop and of the method do not go together. `grid` holds the settings worth searching, in the order in
    which they are searched, each with the values worth trying: the published grid where there is one. It may
    name settings of the fit loop or the model. `models` names the models that it can train; empty: any that
    has parameters. `softmax` says whether it can train by the softmax loss: what weighs single pairs cannot.
    """

    settings_type: type[Settings]
    learner: Callable[[Task, Settings], Learner]
    training: Mapping[str, Any] = field(default_factory=dict)
    refuse: Callable[[TrainingSettings, Settings], None] = lambda training, settings: None
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    softmax: bool = False


def _plain(task: Task, settings: Settings) -> Learner:
    return PlainLearner(task.scorer, task.train, task.training, task.rng)


def _exposure(task: Task, settings: Settings) -> Learner:
    assert isinstance(settings, ExposureSettings)
    return ExposureLearner(task.scorer, task.train, settings)


def _by(learner: Callable[..., Learner]) -> Callable[[Task, Settings], Learner]:
    """How most learners are made: with the settings of their method beside those of the fit loop."""
    return lambda task, settings: learner(task.scorer, task.train, task.training, settings, task.rng)


def _risk(risk: Callable[..., Any], *, heads: int = 0) -> Callable[[Task, Settings], Learner]:
    """A learner by a risk on impressions, with the settings of its method where it has some."""

    def learner(task: Task, settings: Settings) -> Learner:
        scorer = with_heads(task.scorer, heads, "product") if heads else task.scorer
        bound = partial(risk, settings=settings) if type(settings).model_fields else risk
        return ImpressionRiskLearner(scorer, task.train, task.training, bound, task.rng)

    return learner


def _transport(task: Task, settings: Settings) -> Learner:
    """On impressions where the log has them, otherwise the game on clicks."""
    assert isinstance(settings, TransportSettings)
    positives_alone = task.train.impressions is None and settings.solver == "auto"
    if positives_alone or settings.solver == "game":
        return _by(TransportLearner)(task, settings)
    kind = ImpressionLearner if isinstance(task.scorer, Factorization) else TowerLearner
    return _by(kind)(task, settings)


def _refuse_no_game(training: TrainingSettings, settings: Settings) -> None:
    assert isinstance(settings, TransportSettings)
    if settings.warm_epochs >= training.epochs:
        raise ConfigError(
            f"After warm_epochs = {settings.warm_epochs} of epochs = {training.epochs} there is none left "
            "for the game; lower warm_epochs, or use method 'plain'."
        )


# Of the fit loop, for every method. The paper's rates; its penalties too, with smaller ones added: ours is a
# mean over pairs, where good values are often below its smallest.
FIT_GRID: Mapping[str, Sequence[Any]] = {  # values of any type
    "learning_rate": (0.001, 0.003, 0.005, 0.01, 0.05, 0.1),
    "l2": (0.0, 1e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.05, 0.1, 0.2, 0.3),
}
# The paper's prices of the distance and moves of w per move of f; the bounds of w, which it does not have.
_TRANSPORT_GRID: Mapping[str, Sequence[Any]] = {
    "penalty": (0.005, 0.05, 0.1, 0.3, 0.5, 1.0, 2.0),
    "floor": (0.1, 0.3, 0.5, 0.7, 0.9),
    "ceiling": (1.2, 1.5, 2.0, 4.0),
    "steps_w": (1, 5, 10),
}
# Floors as in the paper's study of overlap; powers around the published square root.
_IPW_GRID: Mapping[str, Sequence[Any]] = {
    "variant": ("unbiased", "squared", "weighted", "non-negative"),
    "floor": (0.01, 0.05, 0.1, 0.2, 0.5),
    "power": (0.25, 0.5, 1.0),
}
_DOUBLY_ROBUST_GRID: Mapping[str, Sequence[Any]] = {
    "floor": (0.05, 0.1, 0.2, 0.5),
    "learning_rate_imputation": (0.001, 0.005, 0.01),
    "imputation_dim": (8, 32),
}
# Starts as published, whose ridges (1e-5) are far too small for 32 dimensions.
_EXPOSURE_GRID: Mapping[str, Sequence[Any]] = {
    "prior_weight": (0.0, 0.3, 1.0, 10.0),
    "ridge_users": (1e-5, 1.0, 3.0, 10.0, 30.0),
    "ridge_items": (1e-5, 1.0, 3.0, 10.0, 30.0),
    "init_mu": (0.1, 0.05, 0.01, 0.005, 0.001),
    "precision": (0.3, 1.0, 3.0, 10.0),
}
_ADVERSARIAL_GRID: Mapping[str, Sequence[Any]] = {
    "adversary_fit": (0.1, 0.5, 1.0, 2.0),
    "learning_rate_g": (0.003, 0.01, 0.03),
    "learning_rate_link": (0.0001, 0.001, 0.01),
}
# Pulls as recommended, and a smaller one: of a few tens of numbers the sum of distances is large.
_CAUSAL_EMBEDDING_GRID: Mapping[str, Sequence[Any]] = {
    "pull": (0.001, 0.01, 0.1, 1.0),
    "treatment": ("random", "inverse-popularity"),
    "treatment_share": (0.05, 0.1, 0.2),
}

# Rates and penalties that suited `shown` best of four pairs tried; the others use them without a search.
_IMPRESSIONS: Mapping[str, Any] = {"learning_rate": 0.01, "l2": 0.02}

METHODS: dict[str, Method] = {
    "plain": Method(PlainSettings, _plain, grid=FIT_GRID, softmax=True),
    # What f is about to show is rarely among uniform negatives, so one in three comes from there.
    "transport": Method(
        TransportSettings,
        _transport,
        {"head_negatives": 1},
        _refuse_no_game,
        {**FIT_GRID, **_TRANSPORT_GRID},
    ),
    "shown": Method(NoSettings, _risk(shown_risk), _IMPRESSIONS, grid=FIT_GRID),
    "imitation": Method(NoSettings, _risk(imitation_risk), _IMPRESSIONS, grid=FIT_GRID),
    "esmm": Method(NoSettings, _risk(esmm_risk, heads=2), _IMPRESSIONS, grid=FIT_GRID),
    "escm2": Method(
        CounterfactualSettings,
        _risk(escm2_risk, heads=2),
        _IMPRESSIONS,
        grid={**FIT_GRID, "counterfactual": (0.01, 0.1, 1.0)},
    ),
    "conservative": Method(
        ConservativeSettings,
        _risk(conservative_risk),
        {**_IMPRESSIONS, "negatives": 10},
        grid={**FIT_GRID, "conservatism": (0.1, 0.3, 1.0, 3.0)},
    ),
    "ipw": Method(InversePropensitySettings, _by(InversePropensityLearner), grid={**FIT_GRID, **_IPW_GRID}),
    "expomf": Method(ExposureSettings, _exposure, refuse=refuse_batches, grid=_EXPOSURE_GRID, models=("mf",)),
    "adversarial": Method(
        AdversarialSettings, _by(AdversarialLearner), grid={**FIT_GRID, **_ADVERSARIAL_GRID}
    ),
    "causal-embedding": Method(
        CausalEmbeddingSettings,
        _by(CausalEmbeddingLearner),
        refuse=refuse_whole_catalogue,
        grid={**FIT_GRID, **_CAUSAL_EMBEDDING_GRID},
        models=("mf",),
    ),
    "doubly-robust": Method(
        DoublyRobustSettings,
        _by(DoublyRobustLearner),
        refuse=refuse_catalogue,
        grid={**FIT_GRID, **_DOUBLY_ROBUST_GRID},
    ),
}


def method_named(name: str) -> Method:
    """The method of this name."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]
