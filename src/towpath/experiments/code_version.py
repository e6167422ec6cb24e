"""Which code made a number: a digest of the source that numbers depend on."""

import ast
import hashlib
import inspect
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from towpath.errors import ArtifactError, ConfigError
from towpath.files import write_text
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
    return digest_of(_PACKAGE, _PACKAGE / "__pycache__" / "code_version.json")


def digest_of(package: Path, known: Path) -> str:
    """The digest of a package. `known` is a file with those of its modules, by time of change and size.

    To parse all modules takes half a second, so that only those are parsed that have changed since.
    """
    before, now = _read_known(known), {}
    for name in NUMERIC:
        path = package / name
        for module in sorted(path.rglob("*.py")) if path.suffix != ".py" else [path]:
            key, stat = str(module.relative_to(package)), module.stat()
            state = [stat.st_mtime_ns, stat.st_size]
            found = before.get(key, [])
            now[key] = found if found[:2] == state else [*state, _module_digest(module)]
    if now != before:
        with suppress(ArtifactError):  # where nothing can be written, they are parsed every time
            write_text(known, json.dumps(now))
    parts = "".join(f"{key} {digest}\n" for key, (*_, digest) in now.items())
    return hashlib.sha256(parts.encode()).hexdigest()[:_LENGTH]


def _module_digest(module: Path) -> str:
    return hashlib.sha256(syntax_of(module.read_text(encoding="utf-8")).encode()).hexdigest()


def _read_known(path: Path) -> dict[str, list[Any]]:
    """Module -> time of change, size and digest; empty where the file is not there or not readable."""
    with suppress(OSError, ValueError):
        known = json.loads(path.read_text(encoding="utf-8"))
        return known if isinstance(known, dict) else {}
    return {}


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
        if isinstance(value, str | type):
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
