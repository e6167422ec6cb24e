"""What an experiment is: named recipes, benchmarks, evaluation, and what the paper claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from towpath.errors import unknown_name
from towpath.experiments.paper.benchmarks import benchmark_spec
from towpath.experiments.paper.claims import Claim
from towpath.experiments.sweep import Value, label_of, sweep_recipes
from towpath.methods.recipe import Recipe
from towpath.models.registry import is_trainable

Picture = Literal["weights", "time"]
QUICK_SEEDS = 2
QUICK_EPOCHS, QUICK_BATCH = 3, 1024


@dataclass(frozen=True)
class Sweep:
    """One setting of a recipe over several values, with columns drawn next to it for reference."""

    name: str  # what is varied, as a heading
    recipe: Recipe
    setting: str
    values: tuple[Value, ...]
    references: tuple[str, ...] = ()  # columns of the experiment
    quick: tuple[Value, ...] = ()  # in quick runs

    def label(self, value: Value) -> str:
        """The column of one value."""
        return f"{self.name}: {label_of(self.setting, value)}"

    def columns(self) -> dict[str, Recipe]:
        """One recipe for each value."""
        recipes = sweep_recipes(self.recipe, self.setting, self.values)
        return {self.label(value): recipe for value, recipe in recipes.items()}


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or a figure of the paper."""

    name: str
    title: str
    about: str  # what the paper shows with it, in one or two sentences
    benchmarks: tuple[str, ...]
    methods: Mapping[str, Recipe]  # what is compared, by the names that the paper uses
    pairs: tuple[tuple[str, str], ...] = ()  # (DT-X, X): whose differences are shown
    claims: tuple[Claim, ...] = ()
    not_on: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # benchmark -> columns that are not there
    sweeps: tuple[Sweep, ...] = ()
    pictures: tuple[Picture, ...] = ()
    seeds: int = 10
    fewer_seeds: Mapping[str, int] = field(default_factory=dict)  # column -> seeds, where they cost too much
    k: int = 10
    departures: tuple[str, ...] = ()  # what is not as in the paper
    stands_for: Mapping[str, str] = field(
        default_factory=dict
    )  # benchmark -> the paper's, where it is another

    @property
    def columns(self) -> dict[str, Recipe]:
        """Everything that is fitted: the methods, then the values of the sweeps."""
        return dict(self.methods) | {k: v for sweep in self.sweeps for k, v in sweep.columns().items()}

    def columns_on(self, benchmark: str) -> dict[str, Recipe]:
        """What is fitted on this benchmark."""
        missing = self.not_on.get(benchmark, ())
        return {name: recipe for name, recipe in self.columns.items() if name not in missing}

    def seeds_of(self, column: str) -> int:
        """How many seeds a column is fitted with."""
        return self.fewer_seeds.get(column, self.seeds)

    def fixed_in(self, column: str) -> frozenset[str]:
        """The settings that a column is about: what a sweep varies is not tuned."""
        return frozenset(sweep.setting for sweep in self.sweeps if column in sweep.columns())

    def shows_weights_of(self, benchmark: str, column: str) -> bool:
        """Whether a figure of this experiment needs the weights of this column's pairs."""
        return "weights" in self.pictures and benchmark in self.benchmarks and column in self.methods

    def published_as(self, benchmark: str) -> str:
        """The benchmark under which the paper publishes its numbers."""
        return self.stands_for.get(benchmark, benchmark)


def quick_version(experiment: Experiment) -> Experiment:
    """The same with small data, short fits and few values: to check that it works, not for conclusions."""
    stands_for = {benchmark_spec(name).quick or name: name for name in experiment.benchmarks}
    renamed = {original: small for small, original in stands_for.items()}
    return replace(
        experiment,
        benchmarks=tuple(stands_for),
        stands_for=stands_for,
        not_on={renamed.get(name, name): columns for name, columns in experiment.not_on.items()},
        methods={name: _short(recipe) for name, recipe in experiment.methods.items()},
        sweeps=tuple(
            replace(sweep, values=sweep.quick or sweep.values, recipe=_short(sweep.recipe))
            for sweep in experiment.sweeps
        ),
        seeds=QUICK_SEEDS,
        fewer_seeds={},
    )


def _short(recipe: Recipe) -> Recipe:
    if not is_trainable(recipe.model):
        return recipe
    short = {"epochs": QUICK_EPOCHS, "batch_size": QUICK_BATCH}
    if "pretrain_epochs" in recipe.resolved()["settings"]:
        short["pretrain_epochs"] = 1
    return replace(recipe, settings={**recipe.settings, **short})


def restrict(experiment: Experiment, benchmarks: Sequence[str]) -> Experiment:
    """The same on these benchmarks only; without names, on all."""
    _refuse_unknown("data set of this experiment", benchmarks, experiment.benchmarks)
    return replace(
        experiment, benchmarks=tuple(n for n in experiment.benchmarks if not benchmarks or n in benchmarks)
    )


def on_any_of(benchmarks: Sequence[str], experiments: Sequence[Experiment]) -> list[Experiment]:
    """Those experiments that have any of these benchmarks, on those that they have."""
    known = dict.fromkeys(name for one in experiments for name in one.benchmarks)
    _refuse_unknown("data set of these experiments", benchmarks, tuple(known))
    shared = [[name for name in benchmarks if name in one.benchmarks] for one in experiments]
    return [restrict(one, names) for one, names in zip(experiments, shared, strict=True) if names]


def select_columns(experiment: Experiment, columns: Sequence[str]) -> Experiment:
    """The same with these columns only; without names, with all.

    A sweep is selected as a whole, by its name.
    """
    sweeps = {sweep.name: sweep for sweep in experiment.sweeps}
    _refuse_unknown("column of this experiment", columns, (*experiment.methods, *sweeps))
    if not columns:
        return experiment
    selected = tuple(sweep for name, sweep in sweeps.items() if name in columns)
    drawn = {reference for sweep in selected for reference in sweep.references}
    methods = {n: r for n, r in experiment.methods.items() if n in columns or n in drawn}
    return replace(experiment, methods=methods, sweeps=selected)


def by_data(experiment: Experiment) -> list[Experiment]:
    """One experiment for each benchmark: each is a page of its own."""
    return [replace(experiment, benchmarks=(name,)) for name in experiment.benchmarks]


def _refuse_unknown(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
