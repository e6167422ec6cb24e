"""A setting whose value is a model: of a player next to f, or of the tower that heads stand on."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, PlainSerializer, ValidationInfo

from towpath.models.scorer import Scorer
from towpath.plugins import class_among


def _name(model: str | type[Scorer]) -> str:
    from towpath.models.registry import model_name  # which knows the models that have such settings

    return model_name(model)


# A name, or a class of the user's own; in JSON the name, module:qualname for a class that nobody registers.
ModelSetting = Annotated[str | type[Scorer], PlainSerializer(_name, return_type=str, when_used="json")]


def _trainable(model: str | type[Scorer], info: ValidationInfo) -> str | type[Scorer]:
    from towpath.models.registry import refuse_untrainable

    if model:
        refuse_untrainable(model, str(info.field_name))
    return model


# The same for a player next to f: it has parameters to train, and is empty if it is to be like f.
PlayerSetting = Annotated[ModelSetting, AfterValidator(_trainable)]


def named(settings: Mapping[str, Any]) -> dict[str, Any]:  # values of any type
    """The settings with names instead of classes, ready for JSON."""
    return {key: _name(value) if isinstance(value, type) else value for key, value in settings.items()}


def with_classes(settings: Mapping[str, Any], models: Sequence[type[Scorer]]) -> dict[str, Any]:
    """Settings of a file, with the classes among `models` that their values name as module:qualname."""
    return {k: class_among(v, models) or v if isinstance(v, str) else v for k, v in settings.items()}
