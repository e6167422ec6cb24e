"""A search for the settings with which validation is best; the test part is never looked at."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from towpath.data.split import Split
from towpath.errors import ConfigError, TrainingError, unknown_name
from towpath.evaluation.evaluate import Validator
from towpath.experiments.pool import Work, workers
from towpath.experiments.search import (
    Grid,
    Search,
    Values,
    coordinate_wise,
    halving,
    import_optuna,
    key_of,
    suggested,
    with_start,
)
from towpath.experiments.trials import Record, Trial, Trials, open_trials, write_best
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_named
from towpath.methods.run import fit
from towpath.models.registry import depends_on_seed, is_trainable, model_type

SearchStrategy = Literal["coordinate", "optuna"]
Metric = Literal["hit", "ndcg"]
OPTUNA_TRIALS = 40


@dataclass(frozen=True)
class Tuning:
    """What is searched, and how.

    The search starts from the recipe. What the recipe sets stays as it is unless the grid names it. An empty
    grid stands for the published one of the model and the method.
    """

    recipe: Recipe
    grid: Grid = field(default_factory=dict)
    seeds: Sequence[int] = (0,)
    metric: Metric = "hit"  # at 10, on validation, under full ranking
    search: SearchStrategy = "coordinate"
    rounds: int = 3  # over all settings, coordinate-wise
    trials: int | None = None  # most candidates
    budget: float | None = None  # minutes of training and validation; by successive halving

    def __post_init__(self) -> None:
        """Refuse what cannot be searched, before the first fit."""
        for option, kind in (("metric", Metric), ("search", SearchStrategy)):
            if getattr(self, option) not in get_args(kind):
                raise unknown_name(option, getattr(self, option), get_args(kind))
        if self.search == "optuna":
            import_optuna()
        if self.budget is not None and (self.search != "coordinate" or self.trials is not None):
            raise ConfigError(
                "A budget searches by successive halving until it is spent; leave out --search and --trials."
            )
        if self.budget is not None and "epochs" in self.grid:
            raise ConfigError("A budget decides on epochs by itself; leave epochs out of --grid.")
        if not self.seeds:
            raise ConfigError("A search needs at least one seed.")
        for name, values in self.grid.items():
            for value in values:
                _set(self.recipe, {name: value}).resolve()
        if not self.searched:
            model, method = self.recipe.model_name, self.recipe.method_name
            raise ConfigError(
                f"There is nothing to search for {model} by {method}: no grid is published for it, or "
                "all of it is set; name settings with --grid KEY=VALUE,VALUE."
            )

    @cached_property
    def searched(self) -> Grid:
        """The grid that is searched, with the values of the start in it."""
        grid = self.grid or published_grid(self.recipe)
        used = {name: [_as_used(self.recipe, name, value) for value in grid[name]] for name in grid}
        return with_start(used, self.recipe.resolved()["settings"])

    @cached_property
    def start(self) -> Values:
        """The candidate that comes first."""
        settings = self.recipe.resolved()["settings"]
        return {name: settings[name] for name in self.searched}

    @property
    def fits_per_candidate(self) -> int:
        """A model that does not depend on the seed needs no second one."""
        return len(self.seeds) if depends_on_seed(self.recipe.model) else 1

    def begin(self, spent: Callable[[], float] = lambda: 0.0) -> Search:
        """The search at its start; `spent` are the seconds of all its trials so far, over all processes."""
        if self.budget is not None:
            seconds = 60 * self.budget
            epochs = self.recipe.resolved()["settings"]["epochs"]
            return halving(self.searched, self.start, epochs=epochs, seed=0, left=lambda: seconds - spent())
        if self.search == "optuna":
            return suggested(self.searched, self.start, trials=self.trials or OPTUNA_TRIALS, seed=0)
        return coordinate_wise(self.searched, self.start, rounds=self.rounds, most=self.trials or math.inf)

    def recipes(self, candidate: Values) -> list[Recipe]:
        """The fits of a candidate, one a seed."""
        recipe = _set(self.recipe, candidate)
        return [replace(recipe, seed=seed) for seed in self.seeds[: self.fits_per_candidate]]

    def record(self) -> Record:
        """Everything about the search, ready for JSON."""
        search = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "recipe"}
        recipe = {**self.recipe.names, "settings": self.recipe.named_settings}
        return {**recipe, **search, "grid": {name: list(values) for name, values in self.searched.items()}}


def published_grid(recipe: Recipe) -> Grid:
    """The settings worth searching for the model and the method, without those that the recipe sets."""
    by_method = method_named(recipe.method).grid if is_trainable(recipe.model) else {}
    grid = {**model_type(recipe.model).grid, **by_method}
    known = recipe.resolved()["settings"]  # a method's grid may name what only some models have
    return {name: values for name, values in grid.items() if name in known and name not in recipe.settings}


def _as_used(recipe: Recipe, name: str, value: Any) -> Any:  # of whatever type the setting has
    """The value as the setting takes it: 800 as 800.0, say, so that equal candidates are known as such."""
    try:
        return _set(recipe, {name: value}).resolved()["settings"][name]
    except ConfigError:  # fine by itself, but not with where the search starts
        return value


def _set(recipe: Recipe, values: Values) -> Recipe:
    return replace(recipe, settings={**recipe.settings, **values})


@dataclass(frozen=True)
class Candidate:
    """Settings that were tried, with one trial for each seed."""

    values: Values
    trials: tuple[Trial, ...]
    refused: str | None = None  # why these settings cannot go together, if so

    @property
    def failed(self) -> str | None:
        """Why it could not be trained, if so."""
        return self.refused or next((trial.failed for trial in self.trials if trial.failed is not None), None)

    def mean(self, metric: str) -> float:
        """The mean over seeds of a validation metric; minus infinity if it could not be trained."""
        if self.failed is not None:
            return -math.inf
        return float(np.mean([trial.metrics[metric] for trial in self.trials]))


@dataclass(frozen=True)
class Tuned:
    """The result of a search: all candidates, in the order in which they were tried."""

    tuning: Tuning
    candidates: tuple[Candidate, ...]

    @property
    def ranked(self) -> list[Candidate]:
        """The candidates, best first; of equal ones the first."""
        return sorted(self.candidates, key=lambda candidate: -candidate.mean(self.tuning.metric))

    @property
    def best(self) -> Candidate:
        """The best candidate."""
        return self.ranked[0]

    @property
    def minutes(self) -> float:
        """What training and validation of all candidates took, in all processes together."""
        return _seconds(self.candidates) / 60

    def is_cut_short(self, candidate: Candidate) -> bool:
        """Whether a search within a budget gave it only some of the epochs."""
        return "epochs" in candidate.values and "epochs" not in self.tuning.searched

    @property
    def recipe(self) -> Recipe:
        """The recipe with the best settings."""
        return _set(self.tuning.recipe, self.best.values)

    def at_the_end(self) -> list[str]:
        """Settings whose best value is the smallest or largest number tried: there may be better beyond."""
        return [
            name
            for name, values in self.tuning.searched.items()
            if len(values) > 1 and self.best.values[name] in (values[0], values[-1]) and _is_number(values[0])
        ]

    def record(self) -> Record:
        """The best recipe with its validation metrics, ready for JSON."""
        means = {f"validation_{m}": self.best.mean(m) for m in get_args(Metric)}
        selection = {"chosen_by": f"validation {self.tuning.metric}@10", "seeds": list(self.tuning.seeds)}
        return {**self.recipe.names, "settings": self.recipe.named_settings, **means, **selection}


def _seconds(candidates: Iterable[Candidate]) -> float:
    """What their training and validation took."""
    trials = [trial for candidate in candidates for trial in candidate.trials]
    return sum(trial.seconds + trial.validation_seconds for trial in trials)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def tune(
    split: Split, tuning: Tuning, *, work: Work[Trial] | None = None, origin: Record | None = None
) -> Tuned:
    """The best settings by validation, and all that were tried, all on the same split with the same seeds.

    Equal recipes are fitted once. With a folder every trial is stored, so a search that was killed goes on
    where it stopped. A fit that diverges is a failed trial and does not stop the search. `origin` says where
    the data came from, for the record.
    """
    work = work or Work()
    about = {**tuning.record(), "fingerprint": split.fingerprint, "origin": origin or {}}
    trials = Trials(split.fingerprint) if work.folder is None else open_trials(work.folder, about)
    with workers(_try, split, work.jobs) as results:
        candidates = _Candidates(tuning, trials, results, work.on_result)
        _run_search(tuning.begin(lambda: candidates.seconds / work.jobs), candidates.scores)
    tuned = Tuned(tuning, tuple(candidates.tried.values()))
    if tuned.best.failed is not None:
        raise TrainingError(
            f"None of {len(tuned.candidates):,} candidates could be trained; the first: {tuned.best.failed}"
        )
    if work.folder is not None:
        write_best(work.folder, {**tuned.record(), "fingerprint": split.fingerprint})
    return tuned


def _run_search(search: Search, scores: Callable[[list[Values]], list[float]]) -> None:
    """Send a search the scores of the candidates that it yields, until it ends."""
    try:
        candidates = next(search)
        while True:
            candidates = search.send(scores(candidates))
    except StopIteration:
        return


@dataclass
class _Candidates:
    """The candidates so far; the scores of further ones are looked up or computed."""

    tuning: Tuning
    trials: Trials
    results: Callable[[Sequence[Recipe]], Iterator[tuple[Recipe, Trial]]]
    on_result: Callable[[Trial], None]
    tried: dict[str, Candidate] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """What the trials of all candidates took, those that were looked up included."""
        return _seconds(self.tried.values())

    def scores(self, candidates: list[Values]) -> list[float]:
        """The score of each candidate."""
        fresh = {key: values for values in candidates if (key := key_of(values)) not in self.tried}
        refused = {key: why for key, values in fresh.items() if (why := self._refusal(values)) is not None}
        wanted = {key: self.tuning.recipes(fresh[key]) for key in fresh if key not in refused}
        self._fit([recipe for recipes in wanted.values() for recipe in recipes])
        for key, values in fresh.items():
            trials = tuple(self.trials[recipe] for recipe in wanted.get(key, ()))
            self.tried[key] = Candidate(values, trials, refused.get(key))
        return [self.tried[key_of(values)].mean(self.tuning.metric) for values in candidates]

    def _refusal(self, values: Values) -> str | None:
        """Why these settings cannot be combined, if so; each by itself was fine."""
        try:
            _set(self.tuning.recipe, values).resolve()
        except ConfigError as error:
            return str(error)
        return None

    def _fit(self, recipes: Sequence[Recipe]) -> None:
        missing = {key_of(r.resolved()): r for r in recipes if r not in self.trials}
        for recipe, trial in self.results(list(missing.values())):
            self.trials.add(recipe, trial)
            self.on_result(trial)


def _try(split: Split, recipe: Recipe) -> tuple[Recipe, Trial]:
    return recipe, _trial(split, recipe)


def _trial(split: Split, recipe: Recipe) -> Trial:
    try:
        fitted = fit(split, recipe.suited_to(split.train))
    except (TrainingError, ConfigError) as error:
        return Trial(recipe.named_settings, recipe.seed, {}, 0, 0, 0.0, str(error), recipe.resolved())
    return Trial(
        settings=recipe.named_settings,
        seed=recipe.seed,
        metrics=Validator(split, k=10)(fitted.scorer),
        epochs=len(fitted.history),
        best_epoch=fitted.best_epoch,
        seconds=sum(row["seconds"] for row in fitted.history),
        failed=None,
        resolved=recipe.resolved(),
        validation_seconds=sum(row["validation_seconds"] for row in fitted.history),
    )
