"""Everything a fit depends on besides the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from towpath.data.interactions import Interactions
from towpath.device import device_named
from towpath.errors import ConfigError, unknown_name
from towpath.methods.registry import AnyMethod, method_name, method_named
from towpath.models.model_setting import named
from towpath.models.registry import Model, model_name, model_type, parse_settings, refuse_untrainable
from towpath.models.scorer import Settings
from towpath.training.settings import TrainingSettings
from towpath.training.windows import refuse_unlearnable


@dataclass(frozen=True)
class Resolved:
    """A recipe with every setting filled in and checked."""

    model: Settings
    training: TrainingSettings
    method: Settings
    plain: TrainingSettings  # those of the fit loop if the method were plain


@dataclass(frozen=True)
class Recipe:
    """A model, a method, what was set about either, and a seed.

    Model and method are names, or a class that extends Scorer and a Method of the user's own. `settings` is
    flat: each key belongs to the model, the fit loop or the method, and none to two of them. Where a setting
    is a model, it may be such a class as well.
    """

    model: Model = "mf"
    method: AnyMethod = "plain"
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    device: str = "cpu"  # where it is trained; no part of what it is, like the number of threads

    @property
    def model_name(self) -> str:
        """The name of the model; module:qualname for a class that nobody has registered."""
        return model_name(self.model)

    @property
    def method_name(self) -> str:
        """The name of the method."""
        return method_name(self.method)

    @property
    def names(self) -> dict[str, str]:
        """The names of model and method, ready for JSON."""
        return {"model": self.model_name, "method": self.method_name}

    @property
    def named_settings(self) -> dict[str, Any]:
        """What was set, ready for JSON."""
        return named(self.settings)

    def suited_to(self, train: Interactions) -> "Recipe":
        """The same recipe with the defaults of its method for logs of impressions set, where this is one."""
        if not train.knows_unclicked:
            return self
        defaults = method_named(self.method).on_impressions.get(self.model_name, {})
        return replace(self, settings={**defaults, **self.settings})

    def resolve(self) -> Resolved:
        """Every setting as it will be used.

        An unknown key, a value that cannot be or a device that is not there is a ConfigError.
        """
        kinds = self._kinds()
        device_named(self.device)
        self._refuse_other_models()
        shares: list[dict[str, Any]] = [{}, {}, {}]
        for key, value in self._asked().items():
            owner = next((i for i, kind in enumerate(kinds) if key in kind.model_fields), None)
            if owner is None:
                known = {name for kind in kinds for name in kind.model_fields}
                raise unknown_name(f"setting of {self.model_name} with {self.method_name}", key, known)
            shares[owner][key] = value
        asked = shares[1]
        # What suits the method comes after what suits the model, and what was asked for after both.
        shares[1] = {**self._suited(self.method), **asked}
        model, training, method = (parse_settings(k, s) for k, s in zip(kinds, shares, strict=True))
        assert isinstance(training, TrainingSettings)
        self._refuse_softmax(training)
        self._refuse_weights(training)
        refuse_unlearnable(model_type(self.model), training)
        method_named(self.method).refuse(training, method)
        plain = parse_settings(TrainingSettings, {**self._suited("plain"), **asked})
        assert isinstance(plain, TrainingSettings)
        return Resolved(model, training, method, plain)

    def resolved(self) -> dict[str, Any]:
        """The recipe with all settings, ready for JSON."""
        parts = self.resolve()
        settings: dict[str, Any] = {}  # values of any type
        for part in (parts.model, parts.training, parts.method):
            settings |= part.model_dump(mode="json")
        return {**self.names, "settings": settings, "seed": self.seed}

    def _asked(self) -> dict[str, Any]:
        """What was set, with what naming a player implies; values of any type."""
        asked = dict(self.settings)
        for player, implied in method_named(self.method).players.items():
            for key, value in implied.items() if asked.get(player) else ():
                if self.settings.get(key, value) not in (value, "auto"):
                    raise ConfigError(
                        f"{player}={model_name(asked[player])} means {key}={value}, and "
                        f"{key}={self.settings[key]} says otherwise; leave one of them out."
                    )
                asked[key] = value
        return asked

    def _suited(self, name: AnyMethod) -> dict[str, Any]:
        """Defaults of the fit loop for this model and a method."""
        model, method = model_type(self.model), method_named(name)
        pairwise = {} if method.softmax else model.suited_pairwise
        return {**model.suited_training, **pairwise, **method.training}

    def _refuse_softmax(self, training: TrainingSettings) -> None:
        if training.loss == "softmax" and not method_named(self.method).softmax:
            raise ConfigError(
                f"The method {self.method_name!r} weighs single pairs, and loss=softmax has none; use "
                "loss=logistic, or the method 'plain'."
            )

    def _refuse_weights(self, training: TrainingSettings) -> None:
        if training.weights == "none":
            return
        if not method_named(self.method).value_weights:
            raise ConfigError(
                f"The method {self.method_name!r} does not weigh positives by their values; leave weights "
                "out, or use the method 'plain'."
            )
        refuse_untrainable(self.model, "weights=value")
        sequences = model_type(self.model).trains_on_sequences
        if training.loss == "softmax" and training.pairs == "catalogue" and not sequences:
            raise ConfigError(
                "weights=value with loss=softmax needs one positive in each row, and pairs=catalogue has all "
                "of a user; use pairs=sampled or loss=logistic."
            )

    def _refuse_other_models(self) -> None:
        method = method_named(self.method)
        if not method.closed_form:
            refuse_untrainable(self.model, f"The method {method.name!r}")
        if method.models and self.model_name not in method.models:
            raise ConfigError(
                f"The method {method.name!r} trains {' or '.join(method.models)} only, and the model is "
                f"{self.model_name!r}; choose that model, or another method."
            )

    def _kinds(self) -> tuple[type[Settings], type[Settings], type[Settings]]:
        return model_type(self.model).settings_type, TrainingSettings, method_named(self.method).settings_type
