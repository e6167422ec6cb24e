"""Options in groups: a verb takes frozen dataclasses, the command line sees their fields."""

import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Any, get_type_hints


def spread(verb: Callable[..., None], *, shares_out: bool = False) -> Callable[..., None]:
    """The verb as typer wants it: each parameter that is a dataclass is replaced by its fields.

    def fit(data: str, output: Output) becomes fit(*, data: str, json: bool, quiet: bool).

    A verb with an --out is the only one that writes there, unless it says that several share it.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[Parameter] = []
    for own in inspect.signature(verb).parameters.values():
        group = groups.get(own.name)
        alone = [own.replace(annotation=hints[own.name], kind=Parameter.KEYWORD_ONLY)]
        parameters += alone if group is None else [_parameter(f, group) for f in fields(group)]

    def called(**given: Any) -> None:  # typer has checked the values against the annotations
        for name, kind in groups.items():
            given[name] = kind(**{f.name: given.pop(f.name) for f in fields(kind)})  # type: ignore[operator]  # a dataclass
        outs = [given.get("out"), *(getattr(given[name], "out", None) for name in groups)]
        with nullcontext() if shares_out else _alone(outs):
            verb(**given)

    called.__doc__, called.__name__ = verb.__doc__, verb.__name__
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect looks for it
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    return called


def _alone(outs: Iterable[object]) -> AbstractContextManager[None]:
    """A block in which no other command writes to the --out among these, if there is one."""
    out = next((found for found in outs if isinstance(found, Path)), None)
    if out is None:
        return nullcontext()
    from towpath.files import refuse_unwritable
    from towpath.locks import only_writer

    refuse_unwritable(out)
    return only_writer(out)


def _parameter(field: Field[Any], group: Any) -> Parameter:  # whatever type the field has
    default = Parameter.empty if field.default is MISSING else field.default
    annotation = get_type_hints(group, include_extras=True)[field.name]
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
