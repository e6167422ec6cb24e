"""Which code made a number: a digest of the source that numbers depend on."""

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_named
from towpath.models.registry import model_type

# What decides the result of a fit, an evaluation or a simulated round. How results are stored, reported or
# served is not listed, so a new column on a page does not make old fits useless.
NUMERIC = (
    "rng.py", "device.py", "stats", "kernels", "data", "models", "ranking", "evaluation", "training",
    "transport", "baselines", "bandit", "methods", "worlds", "diagnostics/weights.py", "experiments/loop.py",
)  # fmt: skip
_LENGTH = 12
_NOT_OUTSIDE = ("towpath", "torch", "pydantic")
_PACKAGE = Path(__file__).parents[1]


@cache
def code_version() -> str:
    """A digest of the numeric layers of this package; comments, docstrings and formatting do not count."""
    digest = hashlib.sha256()
    for name in NUMERIC:
        path = _PACKAGE / name
        for module in sorted(path.rglob("*.py")) if path.suffix != ".py" else [path]:
            digest.update(str(module.relative_to(_PACKAGE)).encode())
            digest.update(syntax_of(module.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:_LENGTH]


def syntax_of(source: str) -> str:
    """The syntax tree of a module as text, without docstrings: the same for sources that do the same.

    >>> syntax_of("x = 1  # one") == syntax_of("x=1")
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return ast.dump(tree)


def outside_sources(recipe: Recipe) -> dict[str, str]:
    """Digests of the module files of models and methods that are not part of this package, by module.

    The modules of base classes count, and so do those of the functions and classes that a method is made of
    and of models that a setting names. What these modules import does not.
    """
    parts = [method_named(recipe.method), *_models_of(recipe)]
    outside = {d.__module__: d for part in parts for d in _definitions(part) if _is_outside(d)}
    return {module: _source_digest(outside[module]) for module in sorted(outside)}


def _models_of(recipe: Recipe) -> Iterator[type]:
    """The class of the model, and of the models that the settings name, such as those of w and g."""
    yield model_type(recipe.model)
    for value in recipe.settings.values():
        if isinstance(value, str):
            with suppress(ConfigError):  # most texts among the settings are no names of models
                yield model_type(value)


def _definitions(part: Any) -> list[Any]:  # classes and functions
    """The classes and functions that a class, a function or a dataclass of them is made of."""
    if isinstance(part, type):
        return list(part.__mro__)
    if isinstance(part, partial):
        return _definitions(part.func)
    if inspect.isfunction(part):
        return [part]
    values = [getattr(part, one.name) for one in fields(part)] if is_dataclass(part) else []
    return [*_definitions(type(part)), *(d for v in values if callable(v) for d in _definitions(v))]


def _is_outside(definition: Any) -> bool:
    package = definition.__module__.partition(".")[0]
    return package not in _NOT_OUTSIDE and package not in sys.stdlib_module_names


def _source_digest(definition: Any) -> str:
    """A digest of the file of this class or function; of its own source where there is no file."""
    parts: list[Any] = [inspect.getmodule(definition), definition]
    for part in parts:
        with suppress(OSError, TypeError):
            return hashlib.sha256(inspect.getsource(part).encode()).hexdigest()[:_LENGTH]
    raise ConfigError(
        f"The source of {definition.__qualname__} cannot be read, so its stored results could not be "
        "distinguished from those of another version of it; define it in a file, or store no results."
    )
