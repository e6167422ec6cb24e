"""What a comparison compares: pairs of model and method, each with its own settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.cli.output import Output
from towpath.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from towpath.methods.recipe import Recipe

Pair = tuple[str, str]  # model and method


@dataclass(frozen=True)
class Tuned:
    """The best settings of a towpath tune folder."""

    folder: Path
    settings: Mapping[str, Any]  # values of whatever type a setting has
    fingerprint: str  # of the split they were chosen on


def read_tuned(folders: Sequence[Path]) -> dict[Pair, Tuned]:
    """The best settings in each folder, by model and method."""
    if not folders:
        return {}
    from towpath.experiments.trials import read_best

    tuned: dict[Pair, Tuned] = {}
    for folder in folders:
        recipe, record = read_best(folder)
        pair = recipe.model_name, recipe.method_name
        if pair in tuned:
            raise ConfigError(
                f"Both {tuned[pair].folder} and {folder} are about {pair[0]} by {pair[1]}; "
                "leave one of them out."
            )
        tuned[pair] = Tuned(folder, recipe.settings, record["fingerprint"])
    return tuned


def say_other_data(tuned: Mapping[Pair, Tuned], fingerprint: str, output: Output) -> None:
    """A note for each folder whose search saw another split: what it chose may know these test events."""
    for one in tuned.values():
        if one.fingerprint != fingerprint:
            output.say(f"The settings of {one.folder} were chosen on other data or another split than these.")


def recipes_of(
    names: tuple[list[str], list[str]], settings: dict[str, Any], tuned: Mapping[Pair, Tuned]
) -> "dict[str, Recipe]":
    """One recipe for each pair of model and method, called by what tells it from the others.

    What is set comes after what was tuned: for all first, then for one model or method.
    """
    from towpath.methods.recipe import Recipe

    models, methods = names
    pairs = _pairs(models, methods)
    _refuse_unknown(settings, [*models, *methods])
    for pair, one in tuned.items():
        if pair not in pairs:
            raise ConfigError(
                f"{one.folder} has settings for {pair[0]} by {pair[1]}, which is not compared here; leave it "
                "out, or add it to --models and --methods."
            )
    return {
        _label(pair, names): Recipe(
            *pair, {**(tuned[pair].settings if pair in tuned else {}), **_settings_of(pair, settings)}
        )
        for pair in pairs
    }


def _pairs(models: list[str], methods: list[str]) -> list[Pair]:
    """All models with all methods; one in closed form is not trained, so next to others it is there once."""
    from towpath.models.registry import is_trainable

    trained = [model for model in models if is_trainable(model)]
    closed = {model for model in models if model not in trained} if trained else set()
    return [(model, method) for model in models for method in (["plain"] if model in closed else methods)]


def _label(pair: Pair, names: tuple[list[str], list[str]]) -> str:
    models, methods = names
    if len(methods) == 1:
        return pair[0]
    if len(models) == 1:
        return pair[1]
    return pair[0] if _is_closed(pair[0]) else " ".join(pair)


def _is_closed(model: str) -> bool:
    from towpath.models.registry import is_trainable

    return not is_trainable(model)


def _settings_of(names: Pair, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings for all, then those that name this model or method."""
    mine = {key: value for key, value in settings.items() if "." not in key}
    for key, value in settings.items():
        owner, dot, rest = key.partition(".")
        if dot and owner in names:
            mine[rest] = value
    return mine


def _refuse_unknown(settings: dict[str, Any], names: list[str]) -> None:
    for key in settings:
        owner, dot, _ = key.partition(".")
        if dot and owner not in names:
            raise unknown_name("compared model or method", owner, names)
