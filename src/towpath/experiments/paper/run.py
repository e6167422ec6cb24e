"""From experiments to stored results: planned, run in several processes, nothing computed twice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from towpath.evaluation.evaluate import refuse_impossible
from towpath.evaluation.protocols import EvalProtocol
from towpath.evaluation.task import task_of
from towpath.experiments.compare import run_specs
from towpath.experiments.paper.benchmarks import Benchmark, BenchmarkLocation, benchmark_spec, open_benchmark
from towpath.experiments.paper.catalogue import EXPERIMENTS
from towpath.experiments.paper.earlier import EarlierResults
from towpath.experiments.paper.experiment import Experiment
from towpath.experiments.paper.jobs import Job, JobStatus, finish
from towpath.experiments.paper.record import PlannedRun, Record, hardware, write_record
from towpath.experiments.paper.results import BenchmarkFacts
from towpath.experiments.paper.tuned import TunedSearch, read_searches, same_problem, tuned_recipe
from towpath.experiments.pool import workers
from towpath.experiments.result_store import open_store
from towpath.experiments.run_result import EvaluationConfig, RunSpec
from towpath.locks import LOCK, locked
from towpath.methods.recipe import Recipe
from towpath.models.registry import is_trainable

PROTOCOLS: tuple[EvalProtocol, ...] = ("full", "sampled", "paper")


@dataclass(frozen=True, kw_only=True)
class PaperConfig:
    """How experiments are run, whichever they are."""

    out: Path
    seeds: tuple[int, ...] = ()  # empty: those of each experiment
    jobs: int = 1
    data_dir: Path | None = None
    tuned: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # for every model that is trained
    code: str = ""  # the version whose results are used; empty: a digest of the source
    earlier: EarlierResults = field(default_factory=EarlierResults)  # of other versions, to be used as well
    quick: bool = False
    command: str = ""  # for the record


@dataclass(frozen=True)
class Plan:
    """The jobs of an experiment, and its record."""

    record: Record
    jobs: tuple[Job, ...]

    def write(self, out: Path) -> Path:
        """Write the record; the folder of the experiment."""
        folder = out / self.record.folder
        with locked(folder / LOCK):
            write_record(self.record, folder)
        return folder


def plan(
    experiment: Experiment, config: PaperConfig, on_progress: Callable[[str], None] = lambda step: None
) -> Plan:
    """All fits of an experiment; every benchmark is opened, and errors are reported before the first fit."""
    seeds = config.seeds or tuple(range(experiment.seeds))
    planned = []
    for name in experiment.benchmarks:
        on_progress(f"Opening {benchmark_spec(name).title}")
        planned.append(_plan_benchmark(experiment, name, config, seeds))
    record = Record(
        experiment=experiment.name,
        quick=config.quick,
        command=config.command,
        code=open_store(config.out, config.code).code,
        seeds=seeds,
        k=experiment.k,
        benchmarks=tuple(one.facts for one in planned),
        settings={one.facts.name: one.settings for one in planned},
        origins={one.facts.name: one.origins for one in planned},
        runs=tuple(run for one in planned for run in one.runs),
        hardware=hardware(),
    )
    return Plan(record, tuple(job for one in planned for job in one.jobs))


@dataclass(frozen=True)
class _PlannedBenchmark:
    facts: BenchmarkFacts
    jobs: tuple[Job, ...]
    settings: dict[str, dict[str, Any]]
    origins: dict[str, str]

    @property
    def runs(self) -> list[PlannedRun]:
        return [
            PlannedRun(self.facts.name, job.spec.label, job.spec.recipe.seed, job.name, job.code)
            for job in self.jobs
        ]


def _plan_benchmark(
    experiment: Experiment, name: str, config: PaperConfig, seeds: Sequence[int]
) -> _PlannedBenchmark:
    location = BenchmarkLocation(name, config.data_dir, config.out / "worlds")
    benchmark = open_benchmark(location)
    evaluation = EvaluationConfig(protocols=PROTOCOLS, k=experiment.k)
    for protocol in PROTOCOLS:
        refuse_impossible(benchmark.split, protocol, evaluation.on, evaluation.k)
    recipes, origins = _tuned_recipes(experiment, benchmark, config)
    specs = [
        spec
        for spec in run_specs(recipes, seeds)
        if config.seeds or spec.recipe.seed < experiment.seeds_of(spec.label)
    ]
    store = open_store(config.out, config.code)
    wanted = [
        Job(location, spec, evaluation, store, spec.key(store, benchmark.fingerprint, evaluation),
            _shows_weights(experiment, name, spec))
        for spec in specs
    ]  # fmt: skip
    jobs = tuple(_by_earlier_code(job, config.earlier) for job in wanted)
    settings = {column: recipe.resolved() for column, recipe in recipes.items()}
    return _PlannedBenchmark(facts_of(benchmark, experiment), jobs, settings, origins)


def _tuned_recipes(
    experiment: Experiment, benchmark: Benchmark, config: PaperConfig
) -> tuple[dict[str, Recipe], dict[str, str]]:
    """The recipe of each column, and where its tuned settings come from if it has some."""
    searches = read_searches(config.tuned, benchmark.name, benchmark.split.fingerprint)
    recipes, origins = {}, {}
    for column, recipe in experiment.columns_on(benchmark.name).items():
        fixed = experiment.fixed_in(column) | config.settings.keys()
        recipes[column], search = tuned_recipe(_with(recipe, config.settings), searches, fixed)
        if search is not None:
            origins[column] = _origin(recipe, search, benchmark)
    return recipes, origins


def _by_earlier_code(job: Job, earlier: EarlierResults) -> Job:
    """The same job under the key of a finished result of another version of the code, if there is one."""
    key = None if job.state else earlier.key_for(job.key, job.spec.recipe)
    other = replace(job, key=key) if key else job
    return other if other.state else job  # it may lack the weights that a figure shows


def _shows_weights(experiment: Experiment, benchmark: str, spec: RunSpec) -> bool:
    """Whether a figure shows the weights of this run: one of this experiment, or of another one."""
    return any(
        one.shows_weights_of(benchmark, spec.label) and spec.recipe.seed < one.seeds
        for one in (experiment, *EXPERIMENTS.values())
    )


def _with(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    if not is_trainable(recipe.model):
        return recipe
    return replace(recipe, settings={**recipe.settings, **settings})


def _origin(recipe: Recipe, search: TunedSearch, benchmark: Benchmark) -> str:
    same = search.fingerprint == benchmark.split.fingerprint
    base = "" if same_problem(recipe, search.recipe) else ", as its base model"
    return f"tuned on {'this split' if same else 'another split'}{base}"


def facts_of(benchmark: Benchmark, experiment: Experiment) -> BenchmarkFacts:
    """Sizes of a benchmark, and the best that can be reached on it where that is known."""
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
    jobs: Iterable[Job], processes: int, on_result: Callable[[JobStatus], None] = lambda status: None
) -> None:
    """Finish every job. Other processes may work on the same folder: none computes what another is at.

    First come jobs that no other process has begun, then those that another one had begun: by then they are
    stored, or that process is gone and they are computed here.
    """
    wanted = {job.name: job for job in jobs}
    for job in [job for job in wanted.values() if job.state is not None]:
        on_result(finish(False, wanted.pop(job.name)))
    missing = list(wanted.values())
    for wait in (False, True):
        if not missing:
            return
        busy = []
        with workers(finish, wait, processes) as results:
            for status in results(missing):
                if status.state == "busy":
                    busy.append(status.job)
                else:
                    on_result(status)
        missing = busy
