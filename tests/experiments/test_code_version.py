"""The code version changes with what the code does, and with the source of classes from outside."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from small import small_split
from towpath.errors import ConfigError
from towpath.experiments import code_version as module
from towpath.experiments.code_version import NUMERIC, code_version, digest_of, outside_sources, syntax_of
from towpath.experiments.compare import compare_fits
from towpath.experiments.pool import Work
from towpath.experiments.result_store import ResultStore
from towpath.experiments.run_result import RunResult
from towpath.methods.recipe import Recipe
from towpath.methods.registry import METHODS
from towpath.models.popularity import Popularity
from towpath.models.registry import MODELS

PACKAGE = Path(module.__file__).parents[1]
MODEL = """
from towpath.models.popularity import Popularity

class Mine(Popularity):
    def score(self, context, items):
        return {sign}super().score(context, items)
"""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A module of the user's own with a model; called again it has another sign."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(sign: str):
        (tmp_path / "my_models.py").write_text(MODEL.format(sign=sign))
        sys.modules.pop("my_models", None)
        importlib.invalidate_caches()
        return importlib.import_module("my_models")

    yield load
    sys.modules.pop("my_models", None)


def test_it_is_about_what_the_code_does() -> None:
    assert syntax_of('"""Says one thing."""\nx = 1  # one\n') == syntax_of('"""Another."""\n\nx = (1)\n')
    assert syntax_of("x = 1") != syntax_of("x = 2")
    assert len(code_version()) == 12


def test_only_changed_modules_are_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, known = tmp_path / "package", tmp_path / "cache" / "known.json"
    for name in NUMERIC:
        path = package / name if name.endswith(".py") else package / name / "one.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    parsed: list[str] = []
    monkeypatch.setattr(module, "syntax_of", lambda source: parsed.append(source) or syntax_of(source))
    first = digest_of(package, known)
    assert len(parsed) == len(NUMERIC)
    assert digest_of(package, known) == first
    assert len(parsed) == len(NUMERIC)
    (package / "rng.py").write_text("x = 23\n")
    changed = digest_of(package, known)
    assert changed != first
    assert parsed[len(NUMERIC) :] == ["x = 23\n"]
    assert digest_of(package, tmp_path / "rng.py" / "not-a-folder") == changed
    known.write_text("no JSON")
    assert digest_of(package, known) == changed


def test_layers_that_decide_numbers_are_in_it_and_no_others() -> None:
    assert not {"cli", "reports", "serving", "experiments"} & set(NUMERIC)
    layers = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    shown = {"cli", "reports", "serving", "abtest", "testing", "diagnostics", "experiments"}
    assert layers - shown <= set(NUMERIC)
    assert all((PACKAGE / name).is_file() for name in NUMERIC if name.endswith(".py"))


def test_models_and_methods_of_the_package_have_no_outside_source() -> None:
    for model in MODELS:
        assert outside_sources(Recipe(model)) == {}
    for name, method in METHODS.items():
        assert outside_sources(Recipe(next(iter(method.models or ("mf",))), name)) == {}


def test_the_source_of_a_model_from_outside_counts(outside) -> None:
    digests, names = [], []
    for sign in ("", "-"):
        recipe = Recipe(outside(sign).Mine)
        ((module_name, digest),) = outside_sources(recipe).items()
        assert module_name == "my_models"
        digests.append(digest)
        names.append(ResultStore(Path(), "code").key(data="d", recipe=recipe).name)
    assert digests[0] != digests[1]
    assert names[0] != names[1]


def test_a_registered_model_that_plays_with_another_counts(outside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "mine", outside("").Mine)
    assert list(outside_sources(Recipe("mine"))) == ["my_models"]
    assert list(outside_sources(Recipe("mf", "transport", {"players": "models", "w": "mine"}))) == [
        "my_models"
    ]


def test_changed_source_of_an_outside_model_is_fitted_again(outside, tmp_path: Path) -> None:
    split, work = small_split(), Work[RunResult](folder=tmp_path / "out")
    hits = []
    for sign in ("", "-", ""):
        compared = compare_fits(split, {"mine": Recipe(outside(sign).Mine)}, seeds=[0], work=work)
        hits.append(compared.rows[0].mean)
    assert hits[0] == hits[2] != hits[1]
    assert len(list((tmp_path / "out" / "results").iterdir())) == 2


def test_a_method_from_outside_counts(outside) -> None:
    mine = outside("").Mine
    method = replace(METHODS["plain"], learner=mine)
    assert list(outside_sources(Recipe("mf", method))) == ["my_models"]


def test_a_class_without_source_is_refused() -> None:
    nowhere = type("Nowhere", (Popularity,), {"__module__": "a_module_that_is_not_there"})
    with pytest.raises(ConfigError, match="source of Nowhere cannot be read"):
        outside_sources(Recipe(nowhere))
