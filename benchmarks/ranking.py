"""Peak memory and time of ranking everything for everyone: 100,000 users x 100,000 items.

python -m benchmarks.ranking [--users 100000] [--items 100000] [--most-gigabytes 2]
"""

import argparse
import json
import resource
import sys
import time

import numpy as np
import pyarrow as pa
import torch

from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import Vocabulary
from towpath.evaluation.evaluate import evaluate
from towpath.models.registry import build
from towpath.models.scorer import Sizes
from towpath.rng import Rng

PER_USER = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--most-gigabytes", type=float, default=2.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    split = make_split(options.users, options.items)
    scorer = build("mf", {}, Sizes(options.users, options.items))
    scorer.initialise(split.train, Rng(0))
    start = time.perf_counter()
    evaluate(scorer, split, protocol="full")
    found = {
        "seconds": round(time.perf_counter() - start, 1),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
    }
    print(json.dumps(found, indent=2))
    if found["peak_gigabytes"] > options.most_gigabytes:
        sys.exit(f"over {options.most_gigabytes:g} GB")


def make_split(users: int, items: int) -> Split:
    rng = Rng(0).numpy("ranking")
    # Consecutive runs with a random start are distinct within a user, which is all that matters here.
    starts = rng.integers(items, size=users)
    taken = (starts[:, None] + np.arange(PER_USER)) % items
    whole = Interactions(
        np.repeat(np.arange(users), PER_USER).astype(np.int32),
        taken.ravel().astype(np.int32),
        Vocabulary(pa.array(range(users))),
        Vocabulary(pa.array(range(items))),
        np.tile(np.arange(PER_USER), users).astype(np.int64),
    )
    place = np.tile(np.arange(PER_USER), users)
    parts = (place < PER_USER - 2, place == PER_USER - 2, place == PER_USER - 1)
    train, validation, test = (whole.where(part) for part in parts)
    return Split(train, validation, test, "benchmark")


if __name__ == "__main__":
    main()
