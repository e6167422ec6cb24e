"""What is recorded of a run of an experiment: all that its pages need besides the stored results."""

import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from towpath.errors import ArtifactError
from towpath.experiments.paper.jobs import Failure
from towpath.experiments.paper.results import BenchmarkFacts, BenchmarkResults
from towpath.experiments.paper.weights import StoredPairs
from towpath.experiments.result_store import ResultStore
from towpath.experiments.run_result import RunResult
from towpath.files import damaged, write_text

FORMAT = 3
RECORD = "run.json"


@dataclass(frozen=True)
class PlannedRun:
    """A run that the experiment needs, and the name of its result in the store."""

    benchmark: str
    column: str
    seed: int
    result: str
    code: str = ""  # the version that made it; empty: that of the record


@dataclass(frozen=True)
class Record:
    """A run of an experiment: its settings, where it ran, and the names of its results in the store."""

    experiment: str
    quick: bool
    command: str
    code: str
    seeds: tuple[int, ...]
    k: int
    benchmarks: tuple[BenchmarkFacts, ...]
    settings: Mapping[
        str, Mapping[str, Any]
    ]  # benchmark -> column -> the recipe as it was resolved; any JSON
    origins: Mapping[str, Mapping[str, str]]  # benchmark -> column -> where tuned settings came from
    runs: tuple[PlannedRun, ...]
    hardware: str

    @property
    def codes(self) -> dict[str, int]:
        """How many runs are of which version of the code."""
        return dict(Counter(run.code or self.code for run in self.runs).most_common())

    @property
    def folder(self) -> str:
        """The name of its folder: the experiment and the data set, such as table-1-ml-1m."""
        return folder_name(self.experiment, [one.name for one in self.benchmarks])

    def results_on(self, benchmark: BenchmarkFacts, store: ResultStore) -> BenchmarkResults:
        """What is finished on this benchmark."""
        names = {(run.column, run.seed): run.result for run in self.runs if run.benchmark == benchmark.name}
        runs = {key: store.get(RunResult, name) for key, name in names.items()}
        failures = {key: store.get(Failure, name) for key, name in names.items()}
        planned = [column for column, _ in names]
        once = {column for column in planned if planned.count(column) == 1} if len(self.seeds) > 1 else set()
        return BenchmarkResults(
            facts=benchmark,
            k=self.k,
            seeds=self.seeds,
            runs={key: replace(run, label=key[0]) for key, run in runs.items() if run is not None},
            settings=self.settings[benchmark.name],
            stored_pairs={key: _pairs(store, name) for key, name in names.items()},
            failures={key: one.reason for key, one in failures.items() if one is not None},
            once=frozenset(once),
        )


def folder_name(experiment: str, benchmarks: Sequence[str]) -> str:
    """The experiment and its data sets; words at the end that both have are said once.

    >>> folder_name("table-1", ["ml-1m"]), folder_name("simulation-by-chance", ["ml-1m-by-chance"])
    ('table-1-ml-1m', 'simulation-by-chance-ml-1m')
    """
    words = experiment.split("-")
    for name in benchmarks:
        own = name.split("-")
        same = max(n for n in range(len(own) + 1) if not n or words[-n:] == own[-n:])
        words += own[: len(own) - same]
    return "-".join(words)


def _pairs(store: ResultStore, name: str) -> Callable[[], StoredPairs | None]:
    """Reads the weights of a run when they are needed: they are large, and few pages show them."""
    return lambda: store.get(StoredPairs, name)


def write_record(record: Record, folder: Path) -> None:
    """Write the record of a run."""
    write_text(folder / RECORD, json.dumps({"format": FORMAT, **asdict(record)}, indent=1) + "\n")


def read_record(folder: Path) -> Record:
    """What `write_record` wrote."""
    try:
        record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        if record.pop("format") != FORMAT:
            raise ArtifactError(
                f"{folder} was written by another version of towpath paper; run it again with another --out."
            )
        record["benchmarks"] = tuple(
            BenchmarkFacts(**facts | {"notes": tuple(facts["notes"])}) for facts in record["benchmarks"]
        )
        record["runs"] = tuple(PlannedRun(**run) for run in record["runs"])
        return Record(**record | {"seeds": tuple(record["seeds"])})
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise damaged(folder, RECORD, "cannot be parsed") from error


def runs_in(folder: Path) -> list[Path]:
    """The folders of experiments that were run there."""
    folders = [path.parent for path in sorted(folder.glob(f"*/{RECORD}"))]
    if not folders:
        raise ArtifactError(
            f"There is no run of an experiment in {folder}; make one with towpath paper run NAME --out "
            f"{folder}."
        )
    return folders


def hardware() -> str:
    """The machine and what ran on it, in one line."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{_processor()}, {cores} cores, no GPU used; Python {platform.python_version()}, "
        f"torch {torch.__version__}, one thread a fit"
    )


def _processor() -> str:
    """The name of the processor, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
