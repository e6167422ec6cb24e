"""What an experiment is: recipes under names, where they meet, how they are judged, and what was claimed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from towpath.errors import unknown_name
from towpath.experiments.curve import Value, label_of
from towpath.experiments.curve import sweep as swept
from towpath.experiments.paper.arenas import arena_form
from towpath.experiments.paper.claims import Claim
from towpath.methods.recipe import Recipe
from towpath.models.registry import is_trainable

Picture = Literal["weights", "time"]
QUICK_SEEDS = 2
QUICK_EPOCHS, QUICK_BATCH = 3, 1024


@dataclass(frozen=True)
class Sweep:
    """One setting of a recipe over several values: a curve, with columns drawn beside it for reference."""

    name: str  # what is varied, as a heading
    recipe: Recipe
    setting: str
    values: tuple[Value, ...]
    references: tuple[str, ...] = ()  # columns of the experiment
    quick: tuple[Value, ...] = ()  # where time is short

    def label(self, value: Value) -> str:
        """The column of one value."""
        return f"{self.name}: {label_of(self.setting, value)}"

    def columns(self) -> dict[str, Recipe]:
        """One recipe for each value."""
        recipes = swept(self.recipe, self.setting, self.values)
        return {self.label(value): recipe for value, recipe in recipes.items()}


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or a figure of the paper."""

    name: str
    title: str
    about: str  # what the paper shows with it, in one or two sentences
    arenas: tuple[str, ...]
    methods: Mapping[str, Recipe]  # what is compared, by the names that the paper uses
    pairs: tuple[tuple[str, str], ...] = ()  # (DT-X, X): whose differences are shown
    claims: tuple[Claim, ...] = ()
    not_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # arena -> columns that are not there
    sweeps: tuple[Sweep, ...] = ()
    pictures: tuple[Picture, ...] = ()
    seeds: int = 10
    k: int = 10
    departures: tuple[str, ...] = ()  # what is not as in the paper
    stands_for: Mapping[str, str] = field(default_factory=dict)  # arena -> the paper's, where it is another

    @property
    def columns(self) -> dict[str, Recipe]:
        """Everything that is fitted: the methods, then the values of the sweeps."""
        return dict(self.methods) | {k: v for sweep in self.sweeps for k, v in sweep.columns().items()}

    def columns_on(self, arena: str) -> dict[str, Recipe]:
        """What is fitted on this arena."""
        missing = self.not_on.get(arena, ())
        return {name: recipe for name, recipe in self.columns.items() if name not in missing}

    def published_as(self, arena: str) -> str:
        """The arena under which the paper prints its numbers."""
        return self.stands_for.get(arena, arena)


def quickened(experiment: Experiment) -> Experiment:
    """The same with small data, short fits and few values: to see that everything works, not to conclude."""
    stands_for = {arena_form(name).quick or name: name for name in experiment.arenas}
    renamed = {original: small for small, original in stands_for.items()}
    return replace(
        experiment,
        arenas=tuple(stands_for),
        stands_for=stands_for,
        not_on={renamed.get(name, name): columns for name, columns in experiment.not_on.items()},
        methods={name: _short(recipe) for name, recipe in experiment.methods.items()},
        sweeps=tuple(
            replace(sweep, values=sweep.quick or sweep.values, recipe=_short(sweep.recipe))
            for sweep in experiment.sweeps
        ),
        seeds=QUICK_SEEDS,
    )


def _short(recipe: Recipe) -> Recipe:
    if not is_trainable(recipe.model):
        return recipe
    short = {"epochs": QUICK_EPOCHS, "batch_size": QUICK_BATCH}
    if "pretrain_epochs" in recipe.resolved()["settings"]:
        short["pretrain_epochs"] = 1
    return replace(recipe, settings={**recipe.settings, **short})


def limited(experiment: Experiment, arenas: Sequence[str], columns: Sequence[str]) -> Experiment:
    """The same on these arenas and with these columns only; nothing named: with all.

    A sweep stays as a whole if its name is given, or none of its columns does.
    """
    _refuse_strangers("data set of this experiment", arenas, experiment.arenas)
    sweeps = {sweep.name: sweep for sweep in experiment.sweeps}
    _refuse_strangers("column of this experiment", columns, (*experiment.methods, *sweeps))
    if columns:
        kept = tuple(sweep for name, sweep in sweeps.items() if name in columns)
        drawn = {reference for sweep in kept for reference in sweep.references}
        experiment = replace(
            experiment,
            methods={n: r for n, r in experiment.methods.items() if n in columns or n in drawn},
            sweeps=kept,
        )
    return replace(experiment, arenas=tuple(n for n in experiment.arenas if not arenas or n in arenas))


def _refuse_strangers(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
