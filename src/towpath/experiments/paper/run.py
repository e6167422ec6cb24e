"""From experiments to finished cells: planned, shared out, and none made twice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from towpath.evaluation.evaluate import refuse_impossible
from towpath.evaluation.protocols import EvalProtocol
from towpath.evaluation.task import task_of
from towpath.experiments.compare import cells_of
from towpath.experiments.paper.benchmarks import Benchmark, BenchmarkLocation, benchmark_spec, open_benchmark
from towpath.experiments.paper.cells import Job, JobStatus, finish
from towpath.experiments.paper.code_version import code_version
from towpath.experiments.paper.experiment import Experiment
from towpath.experiments.paper.locks import LOCK, locked
from towpath.experiments.paper.record import CELLS, PlannedCell, Record, hardware, write_record
from towpath.experiments.paper.results import BenchmarkFacts
from towpath.experiments.paper.tuned import Chosen, read_searches, tuned_recipe
from towpath.experiments.pool import workers
from towpath.experiments.result_store import EvaluationConfig, ResultStore
from towpath.methods.recipe import Recipe
from towpath.models.registry import is_trainable

PROTOCOLS: tuple[EvalProtocol, ...] = ("full", "sampled", "paper")


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
    jobs_wanted: tuple[Job, ...]

    def keep(self, out: Path) -> Path:
        """The folder of the experiment, now with its record."""
        folder = out / self.record.experiment
        with locked(folder / LOCK):
            write_record(self.record, folder)
        return folder


def plan(experiment: Experiment, asked: Asked, watch: Callable[[str], None] = lambda step: None) -> Plan:
    """What has to be fitted; every benchmark is opened, and what cannot be is said before the first fit."""
    seeds = asked.seeds or tuple(range(experiment.seeds))
    planned = []
    for name in experiment.benchmarks:
        watch(f"Opening {benchmark_spec(name).title}")
        planned.append(_plan_benchmark(experiment, name, asked, seeds))
    record = Record(
        experiment=experiment.name,
        quick=asked.quick,
        command=asked.command,
        code=asked.code or code_version(),
        seeds=seeds,
        k=experiment.k,
        benchmarks=tuple(one.facts for one in planned),
        settings={one.facts.name: one.settings for one in planned},
        origins={one.facts.name: one.origins for one in planned},
        cells=tuple(cell for one in planned for cell in one.cells),
        hardware=hardware(),
    )
    return Plan(record, tuple(job for one in planned for job in one.jobs_wanted))


@dataclass(frozen=True)
class _PlannedBenchmark:
    facts: BenchmarkFacts
    jobs_wanted: tuple[Job, ...]
    settings: dict[str, dict[str, Any]]
    origins: dict[str, str]

    @property
    def cells(self) -> list[PlannedCell]:
        return [
            PlannedCell(self.facts.name, job.column, job.recipe.seed, job.path.name)
            for job in self.jobs_wanted
        ]


def _plan_benchmark(
    experiment: Experiment, name: str, asked: Asked, seeds: Sequence[int]
) -> _PlannedBenchmark:
    location = BenchmarkLocation(name, asked.data_dir, asked.out / "worlds")
    benchmark = open_benchmark(location)
    evaluation = EvaluationConfig(protocols=PROTOCOLS, k=experiment.k)
    for protocol in PROTOCOLS:
        refuse_impossible(benchmark.split, protocol, evaluation.on, evaluation.k)
    searches = read_searches(asked.tuned, name, benchmark.split.fingerprint)
    recipes, origins = {}, {}
    for column, recipe in experiment.columns_on(name).items():
        recipes[column], chosen = tuned_recipe(_with(recipe, asked.settings), searches)
        if chosen is not None:
            origins[column] = _origin(chosen, benchmark)
    kept = ResultStore(asked.cells, benchmark.fingerprint, evaluation, asked.code or code_version())
    jobs_wanted = tuple(Job(location, column, recipe, kept) for column, recipe in cells_of(recipes, seeds))
    settings = {column: recipe.resolved() for column, recipe in recipes.items()}
    return _PlannedBenchmark(_facts(benchmark, experiment), jobs_wanted, settings, origins)


def _with(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    if not is_trainable(recipe.model):
        return recipe
    return replace(recipe, settings={**recipe.settings, **settings})


def _origin(chosen: Chosen, benchmark: Benchmark) -> str:
    same = chosen.fingerprint == benchmark.split.fingerprint
    return f"tuned on {'this split' if same else 'another split'}"


def _facts(benchmark: Benchmark, experiment: Experiment) -> BenchmarkFacts:
    train = benchmark.split.train
    users = task_of(benchmark.split, "test").users
    best = None
    if benchmark.world is not None:
        seen = (train, benchmark.split.validation)
        best = float(benchmark.world.best_relevance(experiment.k, *seen)[users].mean())
    return BenchmarkFacts(
        name=benchmark.name,
        title=benchmark_spec(benchmark.name).title,
        notes=benchmark.notes,
        fingerprint=benchmark.fingerprint,
        users=train.n_users,
        items=train.n_items,
        events=sum(map(len, (train, benchmark.split.validation, benchmark.split.test))),
        judged_users=len(users),
        best=best,
        stands_for=experiment.published_as(benchmark.name),
    )


def fit_all(
    jobs_wanted: Iterable[Job], jobs: int, watch: Callable[[JobStatus], None] = lambda status: None
) -> None:
    """Finish every job; with other processes on the same folder, each makes what nobody else is making.

    First comes what is free, then what others had begun: by then it is finished, or its process is gone and
    it is made here.
    """
    wanted = {job.path: job for job in jobs_wanted}
    for job in [job for job in wanted.values() if job.state is not None]:
        watch(finish(False, wanted.pop(job.path)))
    missing = list(wanted.values())
    for wait in (False, True):
        if not missing:
            return
        left = []
        with workers(finish, wait, jobs) as results:
            for status in results(missing):
                if status.state == "elsewhere":
                    left.append(status.job)
                else:
                    watch(status)
        missing = left
