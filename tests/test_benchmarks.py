"""Scripts outside the package ask it only for names that it has."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(
    str(p.relative_to(ROOT)) for d in ("benchmarks", "docs", "examples") for p in (ROOT / d).glob("*.py")
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_imported_name_exists(script: str) -> None:
    tree = ast.parse((ROOT / script).read_text(encoding="utf-8"))
    missing = [
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "towpath"
        for name in node.names
        if not _has(str(node.module), name.name)
    ]
    assert missing == []


def _has(module: str, name: str) -> bool:
    if hasattr(import_module(module), name):
        return True
    try:
        import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True
