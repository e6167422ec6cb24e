"""Seconds of an ExpoMF iteration and the memory it takes, on data of MovieLens-1M's size or on real ones.

python -m benchmarks.expomf [DATA --data-dir DIR] [--dim 32] [--threads 1] [--most-seconds 10]
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from statistics import median

import torch

from benchmarks.sampling import made_interactions
from towpath.baselines.exposure import ExposureLearner, ExposureSettings
from towpath.data.interactions import Interactions
from towpath.data.sources import read
from towpath.data.split import split_leave_last_two
from towpath.models.registry import build
from towpath.models.scorer import sizes_of
from towpath.rng import Rng
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

ITERATIONS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--most-seconds", type=float, default=10.0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found = measure(_train(options.data, options.data_dir), options.dim)
    print(json.dumps(found, indent=2))
    if found["processor_seconds"] > options.most_seconds:
        sys.exit(f"an iteration takes more than {options.most_seconds:g} processor seconds")


def _train(data: str | None, data_dir: Path | None) -> Interactions:
    if data is None:
        return made_interactions()
    return split_leave_last_two(read(data, data_dir=data_dir).interactions).train


def measure(train: Interactions, dim: int) -> dict[str, float]:
    """Wall-clock and processor seconds of an iteration (medians), and by how much the memory's peak rose."""
    scorer = build("mf", {"embedding_dim": dim}, sizes_of(train))
    scorer.initialise(train, Rng(0))
    task = TrainingTask(scorer, train, TrainingSettings(), Rng(0))
    learner = ExposureLearner(task, ExposureSettings())
    before = _peak_megabytes()
    wall, processor = [], []
    for number in range(1, ITERATIONS + 1):
        began, spent = time.perf_counter(), time.process_time()
        learner.run_epoch(number)
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - spent)
    return {
        "users": train.n_users,
        "items": train.n_items,
        "seconds": round(median(wall), 2),
        "processor_seconds": round(median(processor), 2),
        "peak_megabytes_above_start": round(_peak_megabytes() - before),
    }


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
