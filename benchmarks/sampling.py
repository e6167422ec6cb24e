"""Negatives drawn per second by one core, on interactions of MovieLens-1M's size.

python -m benchmarks.sampling [--least-millions 5]
"""

import argparse
import json
import sys
import time

import numpy as np
import pyarrow as pa

from towpath.data.interactions import Interactions
from towpath.data.negatives import NegativeSampler
from towpath.data.vocabulary import Vocabulary
from towpath.rng import Rng

USERS, ITEMS, EVENTS, NEGATIVES, BATCH = 6_000, 3_700, 1_000_000, 3, 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--least-millions", type=float, default=5.0)
    options = parser.parse_args()
    found = measure()
    print(json.dumps(found, indent=2))
    if found["million_pairs_per_cpu_second"] < options.least_millions:
        sys.exit(f"fewer than {options.least_millions:g} million pairs a second")


def made_interactions() -> Interactions:
    """Random events, more of them for some users and items than for others."""
    rng = Rng(0).numpy("sampling")
    users = np.sort((USERS * rng.random(EVENTS) ** 1.3).astype(np.int32))
    items = (ITEMS * rng.random(EVENTS) ** 2).astype(np.int32)
    return Interactions(users, items, Vocabulary(pa.array(range(USERS))), Vocabulary(pa.array(range(ITEMS))))


def measure() -> dict[str, float]:
    train, rng = made_interactions(), Rng(0).numpy("order")
    sampler = NegativeSampler(train)
    order = rng.permutation(train.users).astype(np.int64)
    sampler.sample(order[:BATCH], NEGATIVES, rng)  # loads the compiled loops
    # Time of this process, not of the clock on the wall: the machine may be busy with something else.
    start = time.process_time()
    for begin in range(0, len(order), BATCH):
        sampler.sample(order[begin : begin + BATCH], NEGATIVES, rng)
    seconds = time.process_time() - start
    return {"million_pairs_per_cpu_second": round(NEGATIVES * len(order) / seconds / 1e6, 2)}


if __name__ == "__main__":
    main()
