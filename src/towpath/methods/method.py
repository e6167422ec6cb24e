"""What a method is: how it is set, how it trains, and what it can do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from torch import Tensor

from towpath.models.scorer import Settings
from towpath.training.learner import Learner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask
from towpath.training.weighed_pairs import PairValues, WeighedPairs

S = TypeVar("S", bound=Settings)


def _nothing_to_refuse(training: TrainingSettings, settings: Settings) -> None:
    """Any settings go together."""


@dataclass(frozen=True)
class Method(Generic[S]):
    """A way to train a model. The command line, reports and artifacts ask it what it can do.

    A package registers one by an entry point in the group `towpath.methods`; see docs/extending.md.
    """

    name: str
    settings_type: type[S]
    # Makes the learner that trains the model of a task; a class that extends Learner will do.
    learner: Callable[[TrainingTask, S], Learner]

    # Defaults of the fit loop that differ for this method.
    training: Mapping[str, Any] = field(default_factory=dict)
    # Defaults on a log that says what was shown and not clicked, of the fit loop or of the method, by the
    # name of the model. Only for methods that know other logs too.
    on_impressions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Raises a ConfigError if the settings of the loop and of the method do not go together.
    refuse: Callable[[TrainingSettings, S], None] = _nothing_to_refuse
    # The settings worth searching, in the order in which they are searched, each with the values worth
    # trying: the published grid where there is one. It may name settings of the fit loop or the model.
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    # The names of the models that it can train; empty: any that has parameters.
    models: tuple[str, ...] = ()
    # Whether a model without parameters, which is whole from its start, may be given to it.
    closed_form: bool = False
    # Whether it can train by the softmax loss: what weighs single pairs cannot.
    softmax: bool = False
    # Whether it can weigh positives by their values.
    value_weights: bool = False
    # Whether it learns from what was shown and not clicked, so that it needs data with impressions.
    needs_impressions: bool = False
    # The settings that name the model of a player next to f, each with the settings that naming one implies.
    players: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # The weights of training pairs that it has learned, for reports, from a task with the trained model, the
    # settings of the method and the auxiliary state of the fit; None: it learns none.
    weigh_pairs: Callable[[TrainingTask, S, Mapping[str, Tensor]], WeighedPairs] | None = None
    # The critic that it has learned, from the same; None, or a function that gives None: it has none that
    # could be asked about any pair.
    critic_values: Callable[[TrainingTask, S, Mapping[str, Tensor]], PairValues | None] | None = None
