"""The searches that tune the columns of the tables: the same number of candidates for every one of them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from towpath.experiments.paper.benchmarks import BenchmarkLocation, open_benchmark, simulated_from
from towpath.experiments.paper.experiment import Experiment
from towpath.experiments.paper.tuned import same_problem, takes_base_settings
from towpath.experiments.pool import Work, workers
from towpath.experiments.search import Grid
from towpath.experiments.trials import BEST, read_best
from towpath.experiments.tune import Tuned, Tuning, tune
from towpath.methods.recipe import Recipe
from towpath.models.registry import is_trainable

TUNED = "tuned"  # the folder of searches in an --out folder
# Candidates of every search: what the column declares, and five that differ from the best so far in one
# setting. One seed, validation Hit@10 under full ranking.
CANDIDATES, SEED = 6, 0

_FIT: Grid = {"learning_rate": (0.01,), "l2": (0.005,)}
_GAME: Grid = {"penalty": (0.1, 0.3), "floor": (0.5,)}
# Settings that a method is searched over, in this order. A method of many settings has few values of each.
_BY_METHOD: dict[str, Grid] = {
    "plain": {"learning_rate": (0.001, 0.01), "l2": (0.001, 0.005, 0.01)},
    "transport": {**_FIT, **_GAME},
    "ipw": {**_FIT, "floor": (0.2, 0.5), "power": (1.0,)},
    "expomf": {"prior_weight": (0.3, 10.0), "ridge_users": (1.0,), "ridge_items": (1e-5, 1.0)},
    "adversarial": {**_FIT, "adversary_fit": (0.1, 1.0), "learning_rate_link": (0.001,)},
    "doubly-robust": {**_FIT, "floor": (0.2, 0.5), "learning_rate_imputation": (0.005,)},
    "causal-embedding": {**_FIT, "pull": (0.01, 0.1), "treatment": ("inverse-popularity",)},
}
# Attention has dropout instead of a penalty.
_OF_ATTENTION: dict[str, Grid] = {
    "plain": {"learning_rate": (0.002, 0.004), "dropout": (0.1, 0.3), "heads": (2,)},
    "transport": {"learning_rate": (0.002, 0.004), **_GAME},
}


@dataclass(frozen=True)
class PaperSearch:
    """The search of one column on one benchmark."""

    location: BenchmarkLocation
    column: str
    recipe: Recipe
    folder: Path

    @property
    def finished(self) -> bool:
        """Whether its best settings are known, whichever code found them."""
        return (self.folder / BEST).is_file()

    @property
    def tuning(self) -> Tuning:
        """What is searched."""
        return Tuning(self.recipe, grid_of(self.recipe), (SEED,), rounds=1, trials=CANDIDATES)

    def run(self) -> Tuned:
        """Search; what is stored of it is not computed again."""
        benchmark = open_benchmark(self.location)
        origin = {"benchmark": benchmark.name, "column": self.column}
        return tune(benchmark.split, self.tuning, work=Work(1, self.folder), origin=origin)

    def chosen(self) -> tuple[dict[str, Any], float]:
        """The settings that it decided, and the validation Hit@10 with them."""
        recipe, best = read_best(self.folder)
        settings = recipe.resolved()["settings"]
        return {name: settings[name] for name in self.tuning.searched}, float(best["validation_hit"])


def run_searches(searches: Sequence[PaperSearch], processes: int) -> Iterator[PaperSearch]:
    """Search, and give each search as it finishes.

    Whole searches run side by side: within one, each candidate waits for those before it.
    """
    with workers(_finish, None, processes) as results:
        yield from results(searches)


def _finish(shared: None, search: PaperSearch) -> PaperSearch:
    search.run()
    return search


def grid_of(recipe: Recipe) -> Grid:
    """The settings that a column is searched over."""
    grids = _OF_ATTENTION if recipe.model == "attention" else _BY_METHOD
    return grids[recipe.method_name]


def searches_of(experiments: Iterable[Experiment], out: Path, data_dir: Path | None) -> list[PaperSearch]:
    """One search for each column and benchmark, and one only for columns that are the same problem.

    Searched are base models, baselines and transport as this package plays it. What costs most takes the
    learning rate and the penalty of its base model (`takes_base_settings`). A simulation takes the settings
    of the data set that it is made from, except for columns that need its truth. Columns of a sweep take
    those of the column that they vary.
    """
    found: dict[str, list[PaperSearch]] = {}
    for experiment in experiments:
        for name in experiment.benchmarks:
            known = found.setdefault(name, [])
            for column, recipe in experiment.methods.items():
                if column in experiment.not_on.get(name, ()) or not _is_searched(recipe, name):
                    continue
                if not any(same_problem(recipe, one.recipe) for one in known):
                    location = BenchmarkLocation(name, data_dir, out / "worlds")
                    known.append(PaperSearch(location, column, recipe, out / TUNED / name / _slug(column)))
    return [search for searches in found.values() for search in searches]


def _is_searched(recipe: Recipe, benchmark: str) -> bool:
    if not is_trainable(recipe.model) or takes_base_settings(recipe):
        return False
    return not simulated_from(benchmark) or recipe.settings.get("propensity") == "given"


def _slug(column: str) -> str:
    """The column as the name of a folder.

    >>> _slug("DT-MCF, the paper's players"), _slug("DT-(M/N/N)")
    ('dt-mcf-the-paper-s-players', 'dt-m-n-n')
    """
    return re.sub(r"[^a-z0-9]+", "-", column.lower()).strip("-")
