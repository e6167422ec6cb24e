"""One cell of a published table, computed again: does it fall into the published interval?"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from towpath.errors import ArtifactError, ConfigError, TrainingError, unknown_name
from towpath.experiments.paper.benchmarks import BenchmarkLocation, open_benchmark
from towpath.experiments.paper.catalogue import experiment_named
from towpath.experiments.paper.jobs import Failure, Job, finish
from towpath.experiments.paper.record import RECORD, read_record
from towpath.experiments.paper.results import BenchmarkFacts, BenchmarkResults
from towpath.experiments.paper.run import PROTOCOLS, PaperConfig, facts_of
from towpath.experiments.result_store import open_store
from towpath.experiments.run_result import EvaluationConfig, RunResult, RunSpec
from towpath.files import damaged
from towpath.methods.recipe import Recipe
from towpath.stats.estimate import Estimate
from towpath.stats.intervals import LEVEL

RESULTS = "results.json"
_SAME_TRUTH = 1e-5  # relative difference of the best lists' relevance, up to which two worlds are one
_ROUNDING = 0.005  # of numbers that are printed with two places


@dataclass(frozen=True)
class Cell:
    """A column of a published table on one data set, such as table-1-ml-1m/DT-MCF."""

    experiment: str
    benchmark: str
    column: str
    fingerprint: str
    recipe: dict[str, Any]  # as it was resolved; any JSON
    values: dict[str, list[float]]  # measure -> one value for each seed
    facts: BenchmarkFacts | None = None  # of the data set, where the fits are there too


@dataclass(frozen=True)
class Again:
    """One measure, computed again, next to what was published."""

    measure: str
    value: float
    published: Estimate  # where one more seed is expected, 95 times of 100

    @property
    def inside(self) -> bool:
        """Whether the value falls into the published interval, up to the rounding of printed numbers."""
        return self.published.low - _ROUNDING <= self.value <= self.published.high + _ROUNDING


@dataclass(frozen=True)
class Reproduction:
    """A cell that was computed again."""

    measures: list[Again]
    note: str = ""  # about a simulated world that is not to the digit the published one


def read_cell(name: str, results: Path) -> Cell:
    """The published cell FOLDER/COLUMN below a folder of results."""
    folder, _, column = name.partition("/")
    path = results / folder / RESULTS
    if not column or not path.is_file():
        raise ConfigError(
            f"A cell is called FOLDER/COLUMN, such as table-1-ml-1m/DT-MCF, and there is no {path}; choose "
            f"a folder of {results} that holds {RESULTS}."
        )
    try:
        published: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        benchmarks = published["arenas"]
        columns = {c: name for name, one in benchmarks.items() for c in one["columns"]}
        if column not in columns:
            raise unknown_name("column of this table", column, columns)
        benchmark = columns[column]
        recipe = published["settings"][benchmark][column]
        return Cell(
            experiment=published["experiment"],
            benchmark=benchmark,
            column=column,
            fingerprint=benchmarks[benchmark]["fingerprint"],
            recipe={key: recipe[key] for key in ("model", "method", "settings")},
            values=benchmarks[benchmark]["columns"][column],
            facts=_facts(path.parent, benchmark),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path.parent, RESULTS, "cannot be parsed") from error


def _facts(folder: Path, benchmark: str) -> BenchmarkFacts | None:
    """Size and truth of the data set of a published page; None for pages without their fits."""
    if not (folder / RECORD).is_file():
        return None
    return next((facts for facts in read_record(folder).benchmarks if facts.name == benchmark), None)


def reproduce(cell: Cell, seed: int, config: PaperConfig) -> Reproduction:
    """The cell fitted once more with this seed; stored, so that asking again costs nothing."""
    experiment = experiment_named(cell.experiment)
    location = BenchmarkLocation(cell.benchmark, config.data_dir, config.out / "worlds")
    benchmark = open_benchmark(location)
    if benchmark.fingerprint != cell.fingerprint and benchmark.world is None:
        raise ArtifactError(
            f"{cell.benchmark} is not what the cell was computed on: its fingerprint is "
            f"{benchmark.fingerprint[:12]}, and the published one is {cell.fingerprint[:12]}; look for "
            "another version of the data, or run the whole table again."
        )
    recipe = Recipe(cell.recipe["model"], cell.recipe["method"], cell.recipe["settings"], seed)
    evaluation = EvaluationConfig(protocols=PROTOCOLS, k=experiment.k)
    store, spec = open_store(config.out, config.code), RunSpec(cell.column, recipe)
    job = Job(location, spec, evaluation, store, spec.key(store, benchmark.fingerprint, evaluation))
    finish(True, job)
    facts = facts_of(benchmark, experiment)
    results = BenchmarkResults(facts, experiment.k, (seed,), {(cell.column, seed): _result(job)}, {})
    measures = (*facts.measures(experiment.k), *facts.further(experiment.k))
    again = [
        Again(m.heading, results.values(cell.column, m)[0], expected(cell.values[m.heading]))
        for m in measures
        if m.heading in cell.values
    ]
    return Reproduction(again, "" if facts.fingerprint == cell.fingerprint else world_note(facts, cell.facts))


def world_note(made: BenchmarkFacts, published: BenchmarkFacts | None) -> str:
    """How a world that was made here differs from the published one of the same seed; empty: by rounding.

    Threads and processors round sums and order equal items in their own ways. Mostly only the last digits of
    the true relevance differ; if a list is drawn in another order, so are its clicks.
    """
    if published is not None and _sizes(made) == _sizes(published):
        best = (made.best or 0.0, published.best or 0.0)
        if abs(best[0] - best[1]) <= _SAME_TRUTH * abs(best[1]):
            return ""
    events = f", and the published one {published.events:,}" if published else ""
    return (
        f"This processor or this version makes another world of the same kind from the seed: it has "
        f"{made.events:,} events{events}. The published intervals are about fits in the published world, so "
        "a value may fall outside for that reason alone."
    )


def _sizes(facts: BenchmarkFacts) -> tuple[int, ...]:
    return facts.users, facts.items, facts.events, facts.judged_users


def _result(job: Job) -> RunResult:
    result, failure = job.store.get(RunResult, job.name), job.store.get(Failure, job.name)
    if result is None:
        raise TrainingError(failure.reason if failure else f"{job.spec.label} has no result.")
    return result


def expected(values: list[float]) -> Estimate:
    """Where the value of one more seed is expected: the 95 % prediction interval of Student's t.

        mean ± t s sqrt(1 + 1 / n)

    >>> expected([1.0, 2.0, 3.0]).mean, expected([4.0]).width
    (2.0, 0.0)
    """
    average, n = float(np.mean(values)), len(values)
    if n == 1:
        return Estimate(average, average, average, 1, "one seed, no interval", 0.0)
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1) * np.std(values, ddof=1) * (1 + 1 / n) ** 0.5)
    return Estimate(average, average - half, average + half, n, "95 % prediction interval", LEVEL)
