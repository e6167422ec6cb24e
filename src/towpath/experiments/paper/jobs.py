"""A job: one recipe with one seed on one benchmark, fitted, evaluated and stored once."""

import json
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from towpath.diagnostics.weights import learns_weights
from towpath.errors import TrainingError
from towpath.evaluation.evaluate import evaluate
from towpath.evaluation.result import Evaluation
from towpath.experiments.paper.benchmarks import Benchmark, BenchmarkLocation, open_benchmark
from towpath.experiments.paper.weights import StoredPairs, pairs_of
from towpath.experiments.result_store import Entry, ResultKey, ResultStore
from towpath.experiments.run_result import (
    EvaluationConfig,
    RunResult,
    RunSpec,
    processor_seconds,
    result_of,
)
from towpath.methods.run import fit
from towpath.models.scorer import Scorer

State = Literal["stored", "fitted", "failed", "busy"]  # busy: another process is at it


@dataclass(frozen=True)
class Failure:
    """Why a fit could not be finished."""

    kind: ClassVar[str] = "failure"

    reason: str

    def to_entry(self) -> Entry:
        """The reason as a note."""
        return Entry({}, {"reason": self.reason})

    @classmethod
    def from_entry(cls, entry: Entry) -> "Failure":
        """The stored reason."""
        return cls(entry.notes["reason"])


@dataclass(frozen=True)
class Job:
    """A run that is wanted, and where its result is stored; small enough to be sent to another process."""

    location: BenchmarkLocation
    spec: RunSpec
    evaluation: EvaluationConfig
    store: ResultStore
    key: ResultKey
    with_weights: bool = False  # whether a page shows the weights of its pairs, which are large

    @property
    def name(self) -> str:
        """The name of its result in the store."""
        return self.key.name

    @property
    def code(self) -> str:
        """The version of the code that made the result, or will make it."""
        return str(json.loads(self.key.text)["code"])

    @property
    def state(self) -> State | None:
        """How it was finished; None if it was not."""
        if self.store.has(RunResult, self.name) and not self._lacks_weights:
            return "stored"
        return "failed" if self.store.has(Failure, self.name) else None

    @property
    def _lacks_weights(self) -> bool:
        wanted = self.with_weights and learns_weights(self.spec.recipe)
        return wanted and not self.store.has(StoredPairs, self.name)


@dataclass(frozen=True)
class JobStatus:
    """How a job ended."""

    job: Job
    state: State
    reason: str = ""  # of a failure


def finish(wait: bool, job: Job) -> JobStatus:
    """Fit and store, unless the result is stored or, without `wait`, another process is computing it.

    The lock goes when its process ends, however it ends: nothing has to be cleaned up after a kill.
    """
    with job.store.claim(job.name, wait=wait) as mine:
        if not mine:
            return JobStatus(job, "busy")
        state = job.state or _compute(job)
        # A process that waits for the lock finds the result stored.
        job.store.claim_path(job.name).unlink(missing_ok=True)
    failure = job.store.get(Failure, job.name) if state == "failed" else None
    return JobStatus(job, state, failure.reason if failure else "")


def _compute(job: Job) -> State:
    benchmark = open_benchmark(job.location)
    try:
        result, pairs = _fit_and_evaluate(benchmark, job)
    except TrainingError as error:  # one failed fit does not stop the others
        job.store.put(job.key, Failure(str(error)))
        return "failed"
    if pairs is not None:
        job.store.put(job.key, pairs)
    job.store.put(job.key, result)
    return "fitted"


def _fit_and_evaluate(benchmark: Benchmark, job: Job) -> tuple[RunResult, StoredPairs | None]:
    """One fit with everything that tables and figures need of it."""
    before = processor_seconds()
    fitted = fit(benchmark.split, job.spec.recipe)
    evaluations = evaluate_on(benchmark, fitted.scorer, job.evaluation)
    pairs = pairs_of(fitted, benchmark, job.spec.recipe) if job.with_weights else None
    return result_of(job.spec, fitted, evaluations, processor_seconds() - before), pairs


def evaluate_on(benchmark: Benchmark, scorer: Scorer, evaluation: EvaluationConfig) -> tuple[Evaluation, ...]:
    """The evaluations under all protocols; where true relevance is known, `full` reports it too."""
    evaluations = []
    for protocol in evaluation.protocols:
        relevance = benchmark.relevance if protocol == "full" else None
        one = evaluate(
            scorer, benchmark.split, protocol=protocol, on=evaluation.on, k=evaluation.k, relevance=relevance
        )
        evaluations.append(_with_weighted_hit(one, benchmark) if relevance is not None else one)
    return tuple(evaluations)


def _with_weighted_hit(evaluation: Evaluation, benchmark: Benchmark) -> Evaluation:
    """The same with each hit times the true relevance of the hidden click: Rel as the appendix defines it."""
    assert benchmark.world is not None, "true relevance is known in simulated worlds only"
    weighted = benchmark.world.relevance_weighted_hit(evaluation, benchmark.split.part("test"))
    return replace(evaluation, per_user={**evaluation.per_user, "weighted_hit": weighted})
