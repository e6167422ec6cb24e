"""Seconds of an epoch of attention, next to the SASRec of RecTools and RecBole where they are at hand.

    python -m benchmarks.attention ml-1m --data-dir DIR [--threads 2] [--epochs 3] [--rectools-python PYTHON]

Same data, dimension 64, two blocks, one head. Epochs alternate within one run, so that what else the machine
does falls on all alike; the best of each is shown. The peers live in environments of their own, which
`python -m benchmarks.peer_environments` makes. An epoch of RecTools takes the last `length` steps of every
user: windows=last here. RecBole encodes every beginning of a history by itself; a few of its batches are
measured and scaled up. "towpath" is today's recipe but for windows and length, "towpath, all items" the same
with a softmax over the whole catalogue, as the peers have it, and "towpath, before" the recipe before both
(`benchmarks.attention_curve`). What other windows and lengths cost is shown too, one epoch each.
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

import torch

from benchmarks.attention_curve import BEFORE
from benchmarks.peer_environments import interpreter
from benchmarks.peers import write_events
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
HERE = Path(__file__).parent
PEERS = ("rectools", "recbole")
# What is timed alone, one epoch each, after the comparison.
OTHERS: dict[str, dict[str, Any]] = {
    "towpath, all windows": {"windows": "all"},
    "towpath, length 100": {"history_length": 100},
    "towpath, length 200": {"history_length": 200},
    "towpath, length 200, all items": {"history_length": 200, "softmax_negatives": 0},
    "towpath, length 200, all items, bfloat16": {
        "history_length": 200,
        "softmax_negatives": 0,
        "softmax_dtype": "bfloat16",
    },
    "towpath, length 200, before": {"history_length": 200, **BEFORE},
}


def main() -> None:
    options = _arguments()
    torch.set_num_threads(options.threads)
    split = split_leave_last_two(read(options.data, data_dir=options.data_dir).interactions)
    train = split.train
    recipes: dict[str, dict[str, Any]] = {"towpath": {}}
    if not options.only_rectools:
        recipes = {"towpath, before": BEFORE, "towpath, all items": {"softmax_negatives": 0}} | recipes
    ours = {name: learner_of(train, settings) for name, settings in recipes.items()}
    found: dict[str, list[list[float]]] = {name: [] for name in ours}
    with tempfile.TemporaryDirectory() as folder:
        write_events(split, Path(folder))
        peers = PEERS[:1] if options.only_rectools else PEERS
        theirs = {peer: started for peer in peers if (started := _start(peer, Path(folder), options))}
        for number in range(1, options.epochs + 1):
            for peer, process in theirs.items():
                _note(found, peer, _ask(peer, process))
            for name, learner in ours.items():
                _note(found, name, timed(learner, number))
        for process in theirs.values():
            process.communicate()
    others = {} if options.only_rectools else OTHERS
    for name, settings in others.items():
        _note(found, name, timed(learner_of(train, settings), 1))
    print(json.dumps({name: _best(seconds) for name, seconds in found.items() if seconds}, indent=2))


def _note(found: dict[str, list[list[float]]], name: str, seconds: list[float]) -> None:
    """Keep the seconds of an epoch, and say so: one may take minutes on a busy machine."""
    found.setdefault(name, []).append(seconds)
    print(f"{name}: {seconds[0]:.1f} s, {seconds[1]:.1f} s of the processor", file=sys.stderr, flush=True)


def learner_of(train: Interactions, settings: dict[str, Any]) -> PlainLearner:
    alike = {"history_length": LENGTH, "embedding_dim": DIM, "blocks": 2, "heads": 1, "windows": "last"}
    asked = alike | settings
    resolved = Recipe("attention", "plain", asked).resolve()
    scorer = build("attention", resolved.model.model_dump(), Sizes(train.n_users, train.n_items))
    scorer.initialise(train, Rng(0))
    return PlainLearner(TrainingTask(scorer, train, resolved.training, Rng(0)))


def timed(learner: PlainLearner, number: int) -> list[float]:
    wall, used = time.perf_counter(), time.process_time()
    learner.run_epoch(number)
    return [time.perf_counter() - wall, time.process_time() - used]


def _best(seconds: list[list[float]]) -> dict[str, float]:
    wall, used = zip(*seconds, strict=True)
    return {"seconds": round(min(wall), 1), "processor_seconds": round(min(used), 1)}


def _start(peer: str, folder: Path, options: argparse.Namespace) -> subprocess.Popen[str] | None:
    """The peer in a process of its own, ready for its first epoch; None, said aloud, where there is none."""
    python = options.rectools_python if peer == "rectools" and options.rectools_python else interpreter(peer)
    if python is None:
        print(f"no {peer}: python -m benchmarks.peer_environments {peer} makes it", file=sys.stderr)
        return None
    own = folder / peer
    own.mkdir()
    (own / "events.npz").symlink_to(folder / "events.npz")
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}  # as it does
    return subprocess.Popen(
        [python, HERE / "peer_sasrec.py", peer, own, str(options.threads), "epochs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment | {"OMP_NUM_THREADS": str(options.threads)},
    )


def _ask(peer: str, process: subprocess.Popen[str]) -> list[float]:
    assert process.stdin
    assert process.stdout
    process.stdin.write("epoch\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith("seconds"):
            found: list[float] = json.loads(line.removeprefix("seconds"))
            return found
    sys.exit(f"{peer} ended before its epoch did; its messages are above.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument(
        "--only-rectools", action="store_true", help="no other peer, and today's recipe alone"
    )
    parser.add_argument("--rectools-python", type=Path, help="where RecTools is, if not in build/peers")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
