"""All models by the name that users call them by: Towpath's own, and those of installed packages.

A package registers a model by an entry point in the group `towpath.models`; see docs/extending.md.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from towpath.boundary import configuring
from towpath.errors import ConfigError, unknown_name
from towpath.models.attention import Attention
from towpath.models.ease import Ease
from towpath.models.factorization import Factorization
from towpath.models.headed import Headed
from towpath.models.neural import Gmf, Mlp, Ncf
from towpath.models.popularity import Popularity
from towpath.models.scorer import Scorer, Settings, Sizes
from towpath.models.sgns import Sgns
from towpath.models.wide_deep import WideDeep
from towpath.plugins import class_path, find, name_of

S = TypeVar("S", bound=Settings)
Model = str | type[Scorer]  # a name, or a class of the user's own

GROUP = "towpath.models"
LARGEST_INTEGER = 2**40  # no table, list or run is longer

MODELS: dict[str, type[Scorer]] = {
    "popularity": Popularity,
    "mf": Factorization,
    "ease": Ease,
    "gmf": Gmf,
    "mlp": Mlp,
    "ncf": Ncf,
    "sgns": Sgns,
    "attention": Attention,
    "wide_deep": WideDeep,
    "headed": Headed,
}


def model_type(model: Model) -> type[Scorer]:
    """The scorer class of this name, or the class itself."""
    kind = find("model", model, MODELS, GROUP) if isinstance(model, str) else model
    if not (isinstance(kind, type) and issubclass(kind, Scorer)):
        raise ConfigError(
            f"A model is a name or a class that extends towpath.models.scorer.Scorer, and {kind!r} was given."
        )
    if not issubclass(getattr(kind, "settings_type", object), Settings):
        raise ConfigError(
            f"The model {kind.__name__} has no settings_type; set it to a class that extends "
            "towpath.models.scorer.Settings."
        )
    return kind


def model_name(model: Model) -> str:
    """The name of a model; module:qualname for a class that nobody has registered."""
    if isinstance(model, str):
        return model
    return name_of(model, MODELS, GROUP, default=class_path(model_type(model)))


def build(model: Model, settings: Mapping[str, Any], sizes: Sizes) -> Scorer:
    """An unfilled scorer of this model; `settings` may leave out what has a default."""
    kind = model_type(model)
    return kind(parse_settings(kind.settings_type, settings), sizes)


def is_trainable(model: Model) -> bool:
    """Whether this model has parameters to train; one that is fitted in one go has none."""
    return any(p.requires_grad for p in build(model, {}, Sizes(2, 2)).parameters())


def depends_on_seed(model: Model) -> bool:
    """Whether two seeds give two fits of this model."""
    return model_type(model).needs_seed or is_trainable(model)


def refuse_untrainable(model: Model, what: str) -> None:
    """Nothing, unless this model has no parameters to train; `what` is what asks for it."""
    if not is_trainable(model):
        kind = "is learned in one go" if depends_on_seed(model) else "has a closed form"
        raise ConfigError(
            f"{what} needs a model with parameters to train, such as mf, and {model_name(model)} {kind}."
        )


def _bounded(settings: S) -> S:
    """The same settings; raises for a whole number that no machine can hold."""
    for key, value in settings:
        if isinstance(value, int) and abs(value) >= LARGEST_INTEGER:
            raise ConfigError(f"The setting {key} is too large for any machine; choose a smaller one.")
    return settings


def parse_settings(kind: type[S], values: Mapping[str, Any]) -> S:
    """Settings from values or their text, each checked; the first thing wrong is said in one sentence."""
    for key in values:
        if key not in kind.model_fields:
            raise unknown_name("setting", key, kind.model_fields)
    with configuring(f"What was set for {kind.__name__}"):
        try:
            return _bounded(kind.model_validate(dict(values)))
        except ValidationError as error:
            raise _said(error) from None


def _said(error: ValidationError) -> ConfigError:
    """The first thing that is wrong with settings, in one sentence."""
    first = error.errors()[0]
    why = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:  # said of several settings together
        return ConfigError(f"These settings do not go together: {why}.")
    key = ".".join(map(str, first["loc"]))
    given = f"{first['input']!r}"
    shown = given if len(given) <= 80 else f"{given[:80]}…"
    return ConfigError(f"The setting {key} cannot be {shown}: {why[:1].lower()}{why[1:]}.")
