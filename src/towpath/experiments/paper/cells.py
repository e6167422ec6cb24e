"""A cell: one recipe with one seed in one benchmark, fitted, evaluated and kept by whoever comes first."""

import resource
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from towpath.data.split import Split
from towpath.errors import TrainingError
from towpath.evaluation.evaluate import evaluate
from towpath.evaluation.result import Evaluation
from towpath.experiments.paper.benchmarks import Benchmark, BenchmarkLocation, open_benchmark
from towpath.experiments.paper.locks import locked
from towpath.experiments.paper.weights import keep_pairs, pairs_of
from towpath.experiments.result_store import EvaluationConfig, ResultStore, RunResult
from towpath.files import write_text
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.scorer import Scorer

State = Literal["found", "made", "failed", "elsewhere"]
# What a figure of training time needs of an epoch.
_KEPT_OF_EPOCHS = ("epoch", "seconds", "validation_seconds", "validation_hit", "validation_ndcg")


@dataclass(frozen=True)
class Job:
    """What is asked for, and where it is kept; small enough to be sent to another process."""

    location: BenchmarkLocation
    column: str
    recipe: Recipe  # with its seed
    kept: ResultStore

    @property
    def path(self) -> Path:
        """The file of the cell."""
        return self.kept.path((self.column, self.recipe))

    @property
    def state(self) -> State | None:
        """How it was finished, if it was."""
        return "found" if self.path.is_file() else "failed" if failure_path(self.path).is_file() else None


@dataclass(frozen=True)
class JobStatus:
    """What became of a job."""

    job: Job
    state: State
    why: str = ""  # it failed


def pairs_path(cell: Path) -> Path:
    """Where the weighed pairs of a cell are kept."""
    return cell.with_suffix(".pairs.parquet")


def failure_path(cell: Path) -> Path:
    """Where it is said why a cell could not be made."""
    return cell.with_suffix(".failed.txt")


def finish(wait: bool, job: Job) -> JobStatus:
    """Make the cell, unless it is there or, without `wait`, another process is about to make it.

    The lock goes when its process ends, however it ends: nothing has to be cleared away after a kill.
    """
    lock = job.path.with_name(f".{job.path.stem}.lock")
    with locked(lock, wait=wait) as mine:
        if not mine:
            return JobStatus(job, "elsewhere")
        state = job.state
        if state is None:
            state = _make(job)
        lock.unlink(missing_ok=True)  # whoever waits for it finds the cell finished
    why = failure_path(job.path).read_text(encoding="utf-8") if state == "failed" else ""
    return JobStatus(job, state, why)


def _make(job: Job) -> State:
    benchmark = open_benchmark(job.location)
    try:
        done = make_cell(benchmark, job)
    except TrainingError as error:  # one fit that breaks down is no reason to lose the others
        write_text(failure_path(job.path), str(error))
        return "failed"
    job.kept.keep((job.column, job.recipe), done)
    return "made"


def make_cell(benchmark: Benchmark, job: Job) -> RunResult:
    """One fit with all that tables and figures need of it; its weighed pairs are kept on the way."""
    before = _processor_seconds()
    fitted = fit(benchmark.split, job.recipe)
    evaluations = evaluated(fitted.scorer, benchmark, job.kept.evaluation)
    pairs = pairs_of(fitted, benchmark, job.recipe)
    if pairs is not None:
        keep_pairs(pairs, pairs_path(job.path))
    history = tuple({name: row[name] for name in _KEPT_OF_EPOCHS} for row in fitted.history)
    seconds = sum(row["seconds"] for row in history)
    spent = _processor_seconds() - before
    return RunResult(job.column, job.recipe.seed, len(history), seconds, evaluations, history, spent)


def evaluated(scorer: Scorer, benchmark: Benchmark, evaluation: EvaluationConfig) -> tuple[Evaluation, ...]:
    """The evaluations under all protocols; where the truth is known, `full` is held against it."""
    found = []
    for protocol in evaluation.protocols:
        truth = benchmark.relevance if protocol == "full" else None
        one = evaluate(
            scorer, benchmark.split, protocol=protocol, on=evaluation.on, k=evaluation.k, relevance=truth
        )
        found.append(_with_weighted_hit(one, benchmark, benchmark.split) if truth is not None else one)
    return tuple(found)


def _with_weighted_hit(evaluated: Evaluation, benchmark: Benchmark, split: Split) -> Evaluation:
    """The same with each hit times the true relevance of the hidden click: the appendix' reading of Rel."""
    assert benchmark.world is not None, "only worlds have a truth"
    weighted = benchmark.world.relevance_weighted_hit(evaluated, split.part("test"))
    return replace(evaluated, per_user={**evaluated.per_user, "weighted_hit": weighted})


def _processor_seconds() -> float:
    """What this process has used of a processor so far: what a cell costs, whatever else the machine does."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
