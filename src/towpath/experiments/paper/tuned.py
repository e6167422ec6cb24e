"""The best settings of searches, applied to the columns that they were searched for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from towpath.errors import ConfigError
from towpath.experiments.paper.columns import ALIKE
from towpath.experiments.trials import ABOUT, BEST, read_best
from towpath.methods.recipe import Recipe

# Settings that make two recipes of the same model and method different problems: the best settings of one
# say nothing about the other.
_STRUCTURE = (
    "players", "w", "g", "reweight", "domain", "side_features", "loss", "pairs", "hard_negatives",
    "propensity",
)  # fmt: skip


@dataclass(frozen=True)
class TunedSearch:
    """The best recipe of one finished search."""

    folder: Path
    recipe: Recipe
    fingerprint: str  # of the split it was searched on


def read_searches(folder: Path | None, benchmark: str, fingerprint: str) -> list[TunedSearch]:
    """The searches for this benchmark: those in the folder of its name, and any on the same split."""
    if folder is None:
        return []
    if not folder.is_dir():
        raise ConfigError(
            f"--tuned takes a folder that holds towpath tune folders, and {folder} is not a folder."
        )
    named = [_read(path) for path in _searches(folder / benchmark)]
    others = [_read(path) for path in _searches(folder)]
    return [*named, *(one for one in others if one.fingerprint == fingerprint)]


def _searches(folder: Path) -> list[Path]:
    """The finished searches in this folder."""
    return [path.parent for path in sorted(folder.glob(f"*/{BEST}")) if (path.parent / ABOUT).is_file()]


def _read(folder: Path) -> TunedSearch:
    recipe, record = read_best(folder)
    return TunedSearch(folder, recipe, record["fingerprint"])


def tuned_recipe(recipe: Recipe, searches: list[TunedSearch]) -> tuple[Recipe, TunedSearch | None]:
    """The recipe with the best settings of the first search of the same problem; its own settings stay.

    Those that all columns start from alike are no choice of their own, so a search decides them.
    """
    for search in searches:
        if _same_problem(recipe, search.recipe):
            found = search.recipe.settings
            own = {k: v for k, v in recipe.settings.items() if k not in found or v != ALIKE.get(k)}
            settings = {**found, **own}
            return replace(recipe, settings=settings), search
    return recipe, None


def _same_problem(one: Recipe, other: Recipe) -> bool:
    if (one.model, one.method) != (other.model, other.method):
        return False
    first, second = (_structure(recipe.resolved()["settings"]) for recipe in (one, other))
    return first == second


def _structure(settings: Mapping[str, Any]) -> dict[str, Any]:  # values of any type
    return {name: settings[name] for name in _STRUCTURE if name in settings}
