"""The page about own models and methods is a module that works, and both keep their contracts."""

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from towpath.errors import ArtifactError
from towpath.serving.recommender import load
from towpath.testing import MethodContract, ScorerContract

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.S | re.M)
SUITES = {"TestRecent": ScorerContract, "TestRareFirst": MethodContract}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """All code of the page as one module, imported in a folder of its own."""
    folder = tmp_path_factory.mktemp("extending")
    (folder / "my_package.py").write_text("\n".join(BLOCKS))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        yield importlib.import_module("my_package")
        sys.modules.pop("my_package")


def test_a_model_and_a_method_take_forty_lines() -> None:
    model, method = (block for block in BLOCKS if "(Scorer)" in block or "(Learner)" in block)
    assert max(len(block.strip().splitlines()) for block in (model, method)) <= 40


def test_the_page_works_as_written(page: ModuleType) -> None:
    assert len(page.fit.history) == 3
    assert {row.label for row in page.comparison.rows} == {"plain", "rare first"}
    user = page.split.train.user_ids.ids([3])[0]
    assert len(page.recommender.recommend(user, k=4).items) == 4
    with pytest.raises(ArtifactError, match=r"'my_package:Recent'.* hand its class to towpath"):
        load("recent-model")


def laws_of(suite: type) -> list[str]:
    return [name for name in dir(suite) if name.startswith("test_")]


@pytest.mark.parametrize(("suite", "law"), [(s, law) for s, kind in SUITES.items() for law in laws_of(kind)])
def test_the_contracts_of_the_page_hold(page: ModuleType, suite: str, law: str) -> None:
    kind: Any = getattr(page, suite)
    assert issubclass(kind, SUITES[suite])
    getattr(kind(), law)()


def test_the_suites_can_be_imported_without_pytest() -> None:
    folder = Path(sys.modules[ScorerContract.__module__].__file__ or "").parent
    imports = [node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    names = {a.name for node in imports if isinstance(node, ast.Import) for a in node.names}
    names |= {str(node.module) for node in imports if isinstance(node, ast.ImportFrom)}
    assert "torch" in names
    assert not any(name.startswith("pytest") for name in names)


def test_every_capability_and_field_is_on_the_page() -> None:
    from dataclasses import fields

    from towpath.methods.method import Method
    from towpath.models import capabilities

    protocols = [name for name in vars(capabilities) if name.startswith(("Has", "Needs"))]
    assert len(protocols) == 7
    declared = [field.name for field in fields(Method)][3:]
    assert [name for name in (*protocols, *declared) if f"| `{name}` |" not in PAGE] == []
