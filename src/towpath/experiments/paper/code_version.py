"""Which code made a number: a digest of the source that numbers depend on."""

import ast
import hashlib
from functools import cache
from pathlib import Path

# Layers that decide what a fit gives and how it is evaluated. How results are kept, shown or served is not
# among them, so a new column on a page does not throw hours of fits away.
NUMERIC = (
    "rng.py", "kernels", "data", "models", "ranking", "evaluation", "training", "transport", "baselines",
    "methods", "worlds",
)  # fmt: skip
_LENGTH = 12


@cache
def code_version() -> str:
    """A digest of the numeric layers; comments, docstrings and formatting do not count."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for name in NUMERIC:
        path = root / name
        for module in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(str(module.relative_to(root)).encode())
            digest.update(meaning_of(module.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:_LENGTH]


def meaning_of(source: str) -> str:
    """The text of a module's syntax tree without docstrings: the same for texts that do the same.

    >>> meaning_of("x = 1  # one") == meaning_of("x=1")
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return ast.dump(tree)
