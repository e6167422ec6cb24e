"""What is written down of a run of an experiment: all that its pages need besides the cells."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from towpath.errors import ArtifactError
from towpath.experiments.paper.cells import failure_path, pairs_path
from towpath.experiments.paper.results import BenchmarkFacts, BenchmarkResults
from towpath.experiments.result_store import read_cell
from towpath.files import damaged, write_text

FORMAT = 2
RECORD = "run.json"
CELLS = "cells"


@dataclass(frozen=True)
class PlannedCell:
    """A cell that the experiment asks for, and the name of its file."""

    benchmark: str
    column: str
    seed: int
    file: str


@dataclass(frozen=True)
class Record:
    """A run: what was asked for, where, with what, and which files hold the answers."""

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
    cells: tuple[PlannedCell, ...]
    hardware: str

    def found(self, benchmark: BenchmarkFacts, cells: Path) -> BenchmarkResults:
        """What is finished in this benchmark."""
        mine = {
            (cell.column, cell.seed): cells / cell.file
            for cell in self.cells
            if cell.benchmark == benchmark.name
        }
        there = {key: path for key, path in mine.items() if path.is_file()}
        failed = {key: failure_path(path) for key, path in mine.items() if failure_path(path).is_file()}
        planned = [column for column, _ in mine]
        return BenchmarkResults(
            facts=benchmark,
            k=self.k,
            seeds=self.seeds,
            cells={key: read_cell(path, key[0]) for key, path in there.items()},
            settings=self.settings[benchmark.name],
            pair_files={k: p for k, path in there.items() if (p := pairs_path(path)).is_file()},
            failures={key: path.read_text(encoding="utf-8") for key, path in failed.items()},
            once=frozenset(c for c in planned if planned.count(c) == 1)
            if len(self.seeds) > 1
            else frozenset(),
        )


def write_record(record: Record, folder: Path) -> None:
    """Keep what was asked for."""
    write_text(folder / RECORD, json.dumps({"format": FORMAT, **asdict(record)}, indent=1) + "\n")


def read_record(folder: Path) -> Record:
    """What `write_record` wrote."""
    try:
        found: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        if found.pop("format") != FORMAT:
            raise ArtifactError(f"{folder} is of another version of towpath paper; run it again.")
        found["benchmarks"] = tuple(
            BenchmarkFacts(**a | {"notes": tuple(a["notes"])}) for a in found["benchmarks"]
        )
        found["cells"] = tuple(PlannedCell(**cell) for cell in found["cells"])
        return Record(**found | {"seeds": tuple(found["seeds"])})
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(folder, RECORD, "cannot be parsed") from error


def runs_in(folder: Path) -> list[Path]:
    """The folders of experiments that were run there."""
    found = [path.parent for path in sorted(folder.glob(f"*/{RECORD}"))]
    if not found:
        raise ArtifactError(
            f"There is no run of an experiment in {folder}; make one with towpath paper run NAME --out "
            f"{folder}."
        )
    return found


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
