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
from towpath.experiments.paper.results import BenchmarkResults
from towpath.experiments.paper.run import PROTOCOLS, PaperConfig, facts_of
from towpath.experiments.result_store import open_store
from towpath.experiments.run_result import EvaluationConfig, RunResult, RunSpec
from towpath.files import damaged
from towpath.methods.recipe import Recipe
from towpath.stats.estimate import Estimate
from towpath.stats.intervals import LEVEL

RESULTS = "results.json"
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
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path.parent, RESULTS, "cannot be parsed") from error


def reproduce(cell: Cell, seed: int, config: PaperConfig) -> list[Again]:
    """The cell fitted once more with this seed; stored, so that asking again costs nothing."""
    experiment = experiment_named(cell.experiment)
    location = BenchmarkLocation(cell.benchmark, config.data_dir, config.out / "worlds")
    benchmark = open_benchmark(location)
    if benchmark.fingerprint != cell.fingerprint:
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
    return [
        Again(m.heading, results.values(cell.column, m)[0], expected(cell.values[m.heading]))
        for m in measures
        if m.heading in cell.values
    ]


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
