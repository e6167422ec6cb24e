"""Settings that a search chose, given to the columns they were searched for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from towpath.errors import ConfigError
from towpath.experiments.trials import ABOUT, BEST, read_best
from towpath.methods.recipe import Recipe

# Settings that make two games of the same model and method different ones: a search of one says nothing
# about the other.
_STRUCTURE = (
    "players", "w", "g", "reweight", "domain", "side_features", "loss", "pairs", "hard_negatives",
    "propensity",
)  # fmt: skip


@dataclass(frozen=True)
class Chosen:
    """What one search found."""

    folder: Path
    recipe: Recipe
    fingerprint: str  # of the split it was searched on


def read_searches(folder: Path | None, benchmark: str, fingerprint: str) -> list[Chosen]:
    """The searches about this benchmark: those in the folder of its name, and any that saw this split."""
    if folder is None:
        return []
    if not folder.is_dir():
        raise ConfigError(f"--tuned takes a folder of towpath tune folders, and {folder} is none.")
    named = [_read(path) for path in _searches(folder / benchmark)]
    others = [_read(path) for path in _searches(folder)]
    return [*named, *(one for one in others if one.fingerprint == fingerprint)]


def _searches(folder: Path) -> list[Path]:
    """The finished searches in this folder."""
    return [path.parent for path in sorted(folder.glob(f"*/{BEST}")) if (path.parent / ABOUT).is_file()]


def _read(folder: Path) -> Chosen:
    recipe, record = read_best(folder)
    return Chosen(folder, recipe, record["fingerprint"])


def tuned_recipe(recipe: Recipe, searches: list[Chosen]) -> tuple[Recipe, Chosen | None]:
    """The recipe with what the first search of the same game chose; what it sets itself stays."""
    for chosen in searches:
        if _same_game(recipe, chosen.recipe):
            settings = {**chosen.recipe.settings, **recipe.settings}
            return replace(recipe, settings=settings), chosen
    return recipe, None


def _same_game(one: Recipe, other: Recipe) -> bool:
    if (one.model, one.method) != (other.model, other.method):
        return False
    first, second = (_structure(recipe.resolved()["settings"]) for recipe in (one, other))
    return first == second


def _structure(settings: Mapping[str, Any]) -> dict[str, Any]:  # values of any type
    return {name: settings[name] for name in _STRUCTURE if name in settings}
