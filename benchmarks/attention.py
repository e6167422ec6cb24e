"""Seconds that an epoch of attention takes, next to RecTools' SASRec where that is at hand.

    python -m benchmarks.attention ml-1m --data-dir DIR [--rectools-python PYTHON] [--threads 2] [--epochs 3]

Same data, dimension 64, two blocks, one head, softmax over the whole catalogue. Epochs alternate within one
run, so that what else the machine does falls on both alike; the best of each is shown. RecTools may live in
an environment of its own, whose interpreter is named by --rectools-python. An epoch of RecTools takes the
last `length` steps of every user: windows=last here. What other windows and lengths cost is shown too.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import torch

from towpath.data.interactions import Interactions
from towpath.data.sources import read
from towpath.data.split import split_leave_last_two
from towpath.methods.recipe import Recipe
from towpath.models.registry import build
from towpath.models.scorer import Sizes
from towpath.rng import Rng
from towpath.training.plain import PlainLearner
from towpath.training.task import TrainingTask

LENGTH, DIM = 50, 64
# What is timed alone, one epoch each, after the comparison.
OTHERS: dict[str, dict[str, Any]] = {
    "towpath, all windows": {"windows": "all"},
    "towpath, length 100": {"windows": "last", "history_length": 100},
    "towpath, length 200": {"windows": "last", "history_length": 200},
    "towpath, length 200, bfloat16": {"windows": "last", "history_length": 200, "softmax_dtype": "bfloat16"},
}

# Trains an epoch for every line that it is sent, and answers with its seconds: wall clock and processor.
THEIRS = """
import json, logging, sys, time, warnings
import pandas as pd, torch
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import SASRecModel
warnings.simplefilter("ignore"); logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
path, dim, length, threads = sys.argv[1], *map(int, sys.argv[2:])
torch.set_num_threads(threads)
events = pd.read_csv(path)
table = pd.DataFrame({Columns.User: events.user, Columns.Item: events.item, Columns.Weight: 1.0,
                      Columns.Datetime: pd.to_datetime(events.place, unit="s")})
data = Dataset.construct(table)
model = SASRecModel(n_factors=dim, n_blocks=2, n_heads=1, session_max_len=length, epochs=1,
                    dataloader_num_workers=0, verbose=0)
for _ in sys.stdin:
    wall, used = time.perf_counter(), time.process_time()
    model.fit_partial(data, min_epochs=1, max_epochs=1)
    print("seconds", json.dumps([time.perf_counter() - wall, time.process_time() - used]), flush=True)
"""


def main() -> None:
    options = _arguments()
    torch.set_num_threads(options.threads)
    train = split_leave_last_two(read(options.data, data_dir=options.data_dir).interactions).train
    ours = _learner(train, {"windows": "last"})
    found: dict[str, list[list[float]]] = {"towpath": [], "rectools": []}
    with tempfile.TemporaryDirectory() as folder:
        theirs = _rectools(options, _write(train, Path(folder) / "train.csv"))
        for number in range(1, options.epochs + 1):
            if theirs is not None:
                _note(found, "rectools", _ask(theirs))
            _note(found, "towpath", _timed(ours, number))
        if theirs is not None:
            theirs.communicate()
    for name, settings in OTHERS.items():
        _note(found, name, _timed(_learner(train, settings), 1))
    print(json.dumps({name: _best(seconds) for name, seconds in found.items() if seconds}, indent=2))


def _note(found: dict[str, list[list[float]]], name: str, seconds: list[float]) -> None:
    """Keep the seconds of an epoch, and say so: one may take minutes on a busy machine."""
    found.setdefault(name, []).append(seconds)
    print(f"{name}: {seconds[0]:.1f} s, {seconds[1]:.1f} s of the processor", file=sys.stderr, flush=True)


def _learner(train: Interactions, settings: dict[str, Any]) -> PlainLearner:
    asked = {"history_length": LENGTH, "embedding_dim": DIM, "blocks": 2, "heads": 1} | settings
    resolved = Recipe("attention", "plain", asked).resolve()
    scorer = build("attention", resolved.model.model_dump(), Sizes(train.n_users, train.n_items))
    scorer.initialise(train, Rng(0))
    return PlainLearner(TrainingTask(scorer, train, resolved.training, Rng(0)))


def _timed(learner: PlainLearner, number: int) -> list[float]:
    wall, used = time.perf_counter(), time.process_time()
    learner.epoch(number)
    return [time.perf_counter() - wall, time.process_time() - used]


def _best(seconds: list[list[float]]) -> dict[str, float]:
    wall, used = zip(*seconds, strict=True)
    return {"seconds": round(min(wall), 1), "processor_seconds": round(min(used), 1)}


def _write(train: Interactions, path: Path) -> Path:
    columns = {"user": train.users, "item": train.items, "place": range(len(train))}
    pa.csv.write_csv(pa.table(columns), path)
    return path


def _rectools(options: argparse.Namespace, path: Path) -> subprocess.Popen[str] | None:
    """RecTools in a process of its own, ready for its first epoch; None, said aloud, where there is none."""
    probe = [options.rectools_python, "-c", "import rectools.models, pytorch_lightning"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        print(
            f"{options.rectools_python} has no RecTools; install 'rectools[torch]' into an environment of "
            "its own and name its interpreter with --rectools-python to compare.",
            file=sys.stderr,
        )
        return None
    return subprocess.Popen(
        [options.rectools_python, "-c", THEIRS, path, str(DIM), str(LENGTH), str(options.threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": str(options.threads)},
    )


def _ask(theirs: subprocess.Popen[str]) -> list[float]:
    assert theirs.stdin
    assert theirs.stdout
    theirs.stdin.write("epoch\n")
    theirs.stdin.flush()
    for line in theirs.stdout:
        if line.startswith("seconds"):
            found: list[float] = json.loads(line.removeprefix("seconds"))
            return found
    sys.exit("RecTools ended before its epoch did; its messages are above.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rectools-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
