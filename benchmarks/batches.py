"""What larger batches cost and bring on large data: validation after each epoch against processor seconds.

    python -m benchmarks.batches [4096 0] [--epochs 9]

Ten times as many events and users as MovieLens 1M, drawn from a factorisation with popular and less popular
items; 0 is the default batch. One thread, one seed.
"""

import argparse
import time

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from benchmarks.cost import learner_of
from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import Vocabulary
from towpath.evaluation.evaluate import Validator
from towpath.methods.recipe import Recipe
from towpath.rng import Rng

USERS, ITEMS, TAKEN, DIMENSIONS = 60_000, 10_700, 167, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[4096, 0])
    parser.add_argument("--epochs", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    split = made()
    validate = Validator(split)
    print("batch, epoch, processor seconds of training, validation Hit@10 in %")
    for size in options.sizes:
        learner, spent = learner_of(Recipe("mf", "plain", {"batch_size": size}), split), 0.0
        for epoch in range(1, options.epochs + 1):
            began = time.process_time()
            learner.run_epoch(epoch)
            spent += time.process_time() - began
            hit = 100 * validate(learner.scorer)["hit"]
            print(f"{size}, {epoch}, {spent:.1f}, {hit:.2f}", flush=True)


def made() -> Split:
    """All but one event of each user to learn from, and that one of every tenth user to validate on."""
    taken = drawn_items()
    ids = Vocabulary(pa.array(range(USERS))), Vocabulary(pa.array(range(ITEMS)))
    who, few = np.arange(USERS, dtype=np.int32), np.arange(0, USERS, 10, dtype=np.int32)
    train = Interactions(np.repeat(who, TAKEN - 1), taken[:, :-1].ravel(), *ids)
    validation = Interactions(few, taken[few, -1].copy(), *ids)
    return Split(train, validation, validation, "benchmark")


def drawn_items() -> NDArray[np.int32]:
    """What each user takes, in random order: (users, taken), drawn without repeats by odds of e^score."""
    rng = Rng(0).numpy("batches")
    users, items = (rng.normal(size=(n, DIMENSIONS)).astype(np.float32) for n in (USERS, ITEMS))
    appeal = 1.5 * rng.normal(size=ITEMS).astype(np.float32)
    taken = np.empty((USERS, TAKEN), np.int32)
    for start in range(0, USERS, 2000):
        block = slice(start, start + 2000)
        scores = users[block] @ items.T / 2 + appeal
        # Minus the logarithm of an exponential is a Gumbel: with these the highest scores are a draw.
        scores -= np.log(rng.exponential(size=scores.shape).astype(np.float32))
        taken[block] = np.argpartition(-scores, TAKEN, axis=1)[:, :TAKEN]
    return rng.permuted(taken, axis=1)


if __name__ == "__main__":
    main()
