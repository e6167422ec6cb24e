"""The best settings of searches, applied to the columns that they were searched for."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from towpath.errors import ConfigError
from towpath.experiments.paper.benchmarks import simulated_from
from towpath.experiments.paper.columns import ALIKE
from towpath.experiments.trials import ABOUT, BEST, read_best, searched_settings
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
    searched: frozenset[str] = frozenset()  # the settings that it decided


def read_searches(folder: Path | None, benchmark: str, fingerprint: str) -> list[TunedSearch]:
    """The searches for this benchmark, in the order in which they are looked through.

    First those in the folder of its name, then any on the same split, then those in the folder of the data
    set that it is simulated from.
    """
    if folder is None:
        return []
    if not folder.is_dir():
        raise ConfigError(
            f"--tuned takes a folder that holds towpath tune folders, and {folder} is not a folder."
        )
    named = [_read(path) for path in _searches(folder / benchmark)]
    others = [_read(path) for path in _searches(folder)]
    data = simulated_from(benchmark)
    of_data = [_read(path) for path in _searches(folder / data)] if data else []
    return [*named, *(one for one in others if one.fingerprint == fingerprint), *of_data]


def _searches(folder: Path) -> list[Path]:
    """The finished searches in this folder."""
    return [path.parent for path in sorted(folder.glob(f"*/{BEST}")) if (path.parent / ABOUT).is_file()]


def _read(folder: Path) -> TunedSearch:
    recipe, record = read_best(folder)
    return TunedSearch(folder, recipe, record["fingerprint"], frozenset(searched_settings(folder)))


def tuned_recipe(
    recipe: Recipe, searches: list[TunedSearch], fixed: Collection[str] = ()
) -> tuple[Recipe, TunedSearch | None]:
    """The recipe with the best settings of the first search of the same problem, or of its base model.

    Settings of its own stay, unless the search decided them or all columns start from them alike. Those in
    `fixed` always stay: they are what the column is about.
    """
    for search in searches:
        if same_problem(recipe, search.recipe):
            found = search.recipe.settings
            own = {
                name: value
                for name, value in recipe.settings.items()
                if name in fixed
                or name not in found
                or (value != ALIKE.get(name) and name not in search.searched)
            }
            return replace(recipe, settings={**found, **own}), search
    for search in searches:
        if _is_base(search.recipe, recipe):
            found = {n: v for n, v in search.recipe.settings.items() if n in search.searched - set(fixed)}
            return replace(recipe, settings={**recipe.settings, **found}), search
    return recipe, None


def takes_base_settings(recipe: Recipe) -> bool:
    """Whether a column has no search of its own but takes the settings found for its plain model.

    These cost most: games in which w and g are models, and the methods of wide and deep.
    """
    return recipe.settings.get("players") == "models" or (
        recipe.model == "wide_deep" and recipe.method != "plain"
    )


def _is_base(search: Recipe, recipe: Recipe) -> bool:
    """Whether this is the search of the plain model whose settings the recipe takes."""
    plain = (search.model, search.method) == (recipe.model, "plain")
    return plain and not search.settings.get("hard_negatives") and takes_base_settings(recipe)


def same_problem(one: Recipe, other: Recipe) -> bool:
    """Whether the best settings of one recipe say something about the other."""
    if (one.model, one.method) != (other.model, other.method):
        return False
    first, second = (_structure(recipe.resolved()["settings"]) for recipe in (one, other))
    return first == second


def _structure(settings: Mapping[str, Any]) -> dict[str, Any]:  # values of any type
    return {name: settings[name] for name in _STRUCTURE if name in settings}
