"""What a second thread costs or brings: epochs on a free machine and next to another busy program.

    python -m benchmarks.threads [ml-100k] --data-dir DIR [--repeats 3]

Every measurement is a process of its own. "busy" means that one process per core less one computes all the
time. `passive` is how the command line waits (OMP_WAIT_POLICY=PASSIVE), `active` is how torch does. Ratios
are to one thread in the same surroundings; wanted are at most 1.5 when busy, and at most 1 when free.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

MODELS = ("mf", "ncf", "attention")
_SPIN = "while True: pass"


class Row(NamedTuple):
    """Seconds of an epoch with one and with two threads."""

    surroundings: str  # free or busy
    model: str
    waiting: str
    one: float
    two: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", nargs="?", default="ml-100k")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--active", action="store_true", help="also measure torch's own way to wait")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    parser.add_argument("--epoch", metavar="MODEL", help=argparse.SUPPRESS)  # asked of our own processes
    options = parser.parse_args()
    if options.epoch:
        print(json.dumps(epoch_seconds(options)))
        return
    if options.json:
        print(json.dumps({f"{row.surroundings} {row.model}": row._asdict() for row in measured(options)}))
        return
    print("| surroundings | model | waiting | 1 thread | 2 threads | ratio |\n|---|---|---|---|---|---|")
    for row in measured(options):
        cells = (*row[:3], f"{row.one:.2f} s", f"{row.two:.2f} s", f"{row.two / row.one:.2f}")
        print(f"| {' | '.join(cells)} |", flush=True)


def measured(options: argparse.Namespace) -> Iterator[Row]:
    """Every model in both surroundings, as they are measured."""
    for surroundings, others in (("free", 0), ("busy", max(1, (os.cpu_count() or 2) - 1))):
        with busy(others):
            for model in MODELS:
                one = _ask(model, 1, "PASSIVE", options)
                for policy in ("PASSIVE", "ACTIVE") if options.active else ("PASSIVE",):
                    two = _ask(model, 2, policy, options)
                    yield Row(surroundings, model, policy.lower(), one, two)


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes compute all the time."""
    others = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def _ask(model: str, threads: int, policy: str, options: argparse.Namespace) -> float:
    """Median seconds of an epoch, over processes of their own."""
    command = [sys.executable, "-m", "benchmarks.threads", options.data, "--epoch", model]
    if options.data_dir:
        command += ["--data-dir", str(options.data_dir)]
    counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    environment = os.environ | counts | {"OMP_WAIT_POLICY": policy}
    done = [
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        for _ in range(options.repeats)
    ]
    return median(json.loads(text) for text in done)


def epoch_seconds(options: argparse.Namespace) -> float:
    """Seconds of the second epoch: the first compiles."""
    from benchmarks.cost import learner_of
    from towpath.data.sources import read
    from towpath.data.split import split_leave_last_two
    from towpath.methods.recipe import Recipe

    split = split_leave_last_two(read(options.data, data_dir=options.data_dir).interactions)
    learner = learner_of(Recipe(options.epoch), split)
    learner.run_epoch(1)
    began = time.perf_counter()
    learner.run_epoch(2)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
