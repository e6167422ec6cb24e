"""From experiments to finished cells: planned, shared out, and none made twice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from towpath.evaluation.evaluate import refuse_impossible
from towpath.evaluation.protocols import Protocol
from towpath.evaluation.task import task_of
from towpath.experiments.compare import cells_of
from towpath.experiments.kept import Judging, KeptCells
from towpath.experiments.paper.arenas import Arena, Place, arena_form, open_arena
from towpath.experiments.paper.cells import Piece, Told, finish
from towpath.experiments.paper.code_version import code_version
from towpath.experiments.paper.experiment import Experiment
from towpath.experiments.paper.locks import LOCK, locked
from towpath.experiments.paper.record import CELLS, PlannedCell, Record, hardware, write_record
from towpath.experiments.paper.results import ArenaFacts
from towpath.experiments.paper.tuned import Chosen, read_searches, tuned_recipe
from towpath.experiments.pool import workers
from towpath.methods.recipe import Recipe
from towpath.models.registry import is_trainable

PROTOCOLS: tuple[Protocol, ...] = ("full", "sampled", "paper")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How experiments are run, whichever they are."""

    out: Path
    seeds: tuple[int, ...] = ()  # none: as many as each experiment wants
    jobs: int = 1
    data_dir: Path | None = None
    tuned: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # for every model that is trained
    code: str = ""  # whose cells count; none: those of the source as it is
    quick: bool = False
    command: str = ""  # for the record

    @property
    def cells(self) -> Path:
        """Where cells are kept."""
        return self.out / CELLS


@dataclass(frozen=True)
class Plan:
    """The cells that an experiment needs, and what is written down of it."""

    record: Record
    pieces: tuple[Piece, ...]

    def keep(self, out: Path) -> Path:
        """The folder of the experiment, now with its record."""
        folder = out / self.record.experiment
        with locked(folder / LOCK):
            write_record(self.record, folder)
        return folder


def plan(experiment: Experiment, asked: Asked, watch: Callable[[str], None] = lambda step: None) -> Plan:
    """What has to be fitted; every arena is opened, and what cannot be is said before the first fit."""
    seeds = asked.seeds or tuple(range(experiment.seeds))
    planned = []
    for name in experiment.arenas:
        watch(f"Opening {arena_form(name).title}")
        planned.append(_plan_arena(experiment, name, asked, seeds))
    record = Record(
        experiment=experiment.name,
        quick=asked.quick,
        command=asked.command,
        code=asked.code or code_version(),
        seeds=seeds,
        k=experiment.k,
        arenas=tuple(one.facts for one in planned),
        settings={one.facts.name: one.settings for one in planned},
        origins={one.facts.name: one.origins for one in planned},
        cells=tuple(cell for one in planned for cell in one.cells),
        hardware=hardware(),
    )
    return Plan(record, tuple(piece for one in planned for piece in one.pieces))


@dataclass(frozen=True)
class _PlannedArena:
    facts: ArenaFacts
    pieces: tuple[Piece, ...]
    settings: dict[str, dict[str, Any]]
    origins: dict[str, str]

    @property
    def cells(self) -> list[PlannedCell]:
        return [
            PlannedCell(self.facts.name, piece.column, piece.recipe.seed, piece.path.name)
            for piece in self.pieces
        ]


def _plan_arena(experiment: Experiment, name: str, asked: Asked, seeds: Sequence[int]) -> _PlannedArena:
    place = Place(name, asked.data_dir, asked.out / "worlds")
    arena = open_arena(place)
    judging = Judging(protocols=PROTOCOLS, k=experiment.k)
    for protocol in PROTOCOLS:
        refuse_impossible(arena.split, protocol, judging.on, judging.k)
    searches = read_searches(asked.tuned, name, arena.split.fingerprint)
    recipes, origins = {}, {}
    for column, recipe in experiment.columns_on(name).items():
        recipes[column], chosen = tuned_recipe(_with(recipe, asked.settings), searches)
        if chosen is not None:
            origins[column] = _origin(chosen, arena)
    kept = KeptCells(asked.cells, arena.fingerprint, judging, asked.code or code_version())
    pieces = tuple(Piece(place, column, recipe, kept) for column, recipe in cells_of(recipes, seeds))
    settings = {column: recipe.resolved() for column, recipe in recipes.items()}
    return _PlannedArena(_facts(arena, experiment), pieces, settings, origins)


def _with(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    if not is_trainable(recipe.model):
        return recipe
    return replace(recipe, settings={**recipe.settings, **settings})


def _origin(chosen: Chosen, arena: Arena) -> str:
    same = chosen.fingerprint == arena.split.fingerprint
    return f"tuned on {'this split' if same else 'another split'}"


def _facts(arena: Arena, experiment: Experiment) -> ArenaFacts:
    train = arena.split.train
    users = task_of(arena.split, "test").users
    best = None
    if arena.world is not None:
        seen = (train, arena.split.validation)
        best = float(arena.world.best_relevance(experiment.k, *seen)[users].mean())
    return ArenaFacts(
        name=arena.name,
        title=arena_form(arena.name).title,
        notes=arena.notes,
        fingerprint=arena.fingerprint,
        users=train.n_users,
        items=train.n_items,
        events=sum(map(len, (train, arena.split.validation, arena.split.test))),
        judged_users=len(users),
        best=best,
        stands_for=experiment.published_as(arena.name),
    )


def fit_all(pieces: Iterable[Piece], jobs: int, watch: Callable[[Told], None] = lambda told: None) -> None:
    """Finish every piece; with other processes on the same folder, each makes what nobody else is making.

    First comes what is free, then what others had begun: by then it is finished, or its process is gone and
    it is made here.
    """
    wanted = {piece.path: piece for piece in pieces}
    for piece in [piece for piece in wanted.values() if piece.state is not None]:
        watch(finish(False, wanted.pop(piece.path)))
    missing = list(wanted.values())
    for wait in (False, True):
        if not missing:
            return
        left = []
        with workers(finish, wait, jobs) as results:
            for told in results(missing):
                if told.state == "elsewhere":
                    left.append(told.piece)
                else:
                    watch(told)
        missing = left
