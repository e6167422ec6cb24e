"""All models by the name that users call them by; one line adds the next."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

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

S = TypeVar("S", bound=Settings)

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


def model_type(name: str) -> type[Scorer]:
    """The scorer class of this name."""
    if name not in MODELS:
        raise unknown_name("model", name, MODELS)
    return MODELS[name]


def build(name: str, settings: Mapping[str, Any], sizes: Sizes) -> Scorer:
    """An unfilled scorer of this name; `settings` may leave out what has a default."""
    kind = model_type(name)
    return kind(parse_settings(kind.settings_type, settings), sizes)


def is_trainable(name: str) -> bool:
    """Whether the model of this name has parameters to train; one that is fitted in one go has none."""
    return any(p.requires_grad for p in build(name, {}, Sizes(2, 2)).parameters())


def depends_on_seed(name: str) -> bool:
    """Whether two seeds give two fits of this model."""
    return model_type(name).needs_seed or is_trainable(name)


def refuse_untrainable(name: str, what: str) -> None:
    """Nothing, unless the model of this name has no parameters to train; `what` is what asks for it."""
    if not is_trainable(name):
        kind = "is learned in one go" if depends_on_seed(name) else "has a closed form"
        raise ConfigError(f"{what} needs a model with parameters to train, such as mf, and {name} {kind}.")


def parse_settings(kind: type[S], values: Mapping[str, Any]) -> S:
    """Settings from values or their text, each checked; the first thing wrong is said in one sentence."""
    for key in values:
        if key not in kind.model_fields:
            raise unknown_name("setting", key, kind.model_fields)
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        why = first["msg"].removeprefix("Value error, ")
        if not first["loc"]:  # said of several settings together
            raise ConfigError(f"These settings do not go together: {why}.") from None
        key = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"The setting {key} cannot be {first['input']!r}: {why[:1].lower()}{why[1:]}."
        ) from None
