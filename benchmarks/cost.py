"""What an epoch of transport costs next to a plain one, and how soon each reaches plain's best validation.

    python -m benchmarks.cost ml-1m --data-dir DIR [--seeds 3]

Epochs of the variants are interleaved in one process and measured in processor time, so that what else the
machine does falls on all alike. Ratios are what counts.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from towpath.data.sources import read
from towpath.data.split import Split, split_leave_last_two
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_named
from towpath.methods.run import fit
from towpath.models.registry import build
from towpath.models.scorer import sizes_of
from towpath.rng import Rng
from towpath.training.learner import Learner
from towpath.training.task import TrainingTask

VARIANTS: dict[str, Recipe] = {
    "plain": Recipe("mf", "plain"),
    "plain, same hard negatives": Recipe("mf", "plain", {"hard_negatives": 1}),
    "plain, whole catalogue": Recipe("mf", "plain", {"pairs": "catalogue"}),
    "transport (margin players)": Recipe("mf", "transport", {"warm_epochs": 0}),
    "transport, uniform negatives": Recipe("mf", "transport", {"warm_epochs": 0, "hard_negatives": 0}),
    "transport (models play w and g)": Recipe("mf", "transport", {"warm_epochs": 0, "players": "models"}),
    "transport, whole catalogue": Recipe("mf", "transport", {"warm_epochs": 0, "pairs": "catalogue"}),
}
EPOCHS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=0, help="also fit to the end, with so many seeds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    split = split_leave_last_two(read(options.data, data_dir=options.data_dir).interactions)
    print(json.dumps(epoch_costs(split), indent=2))
    for seed in range(options.seeds):
        print(json.dumps(time_to_plain_best(split, seed), indent=2), flush=True)


def learner_of(recipe: Recipe, split: Split) -> Learner:
    resolved, rng = recipe.resolve(), Rng(recipe.seed)
    scorer = build(recipe.model, resolved.model.model_dump(), sizes_of(split.train))
    scorer.initialise(split.train, rng)
    task = TrainingTask(scorer, split.train, resolved.training, rng)
    return method_named(recipe.method).learner(task, resolved.method)


def epoch_costs(split: Split) -> dict[str, Any]:
    """Median processor seconds of an epoch of each variant, and its ratio to the plain one."""
    learners = {name: learner_of(recipe, split) for name, recipe in VARIANTS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for number in range(1, EPOCHS + 1):
        for name, learner in learners.items():
            start = time.process_time()
            learner.epoch(number)
            seconds[name].append(time.process_time() - start)
    middle = {name: median(values[1:]) for name, values in seconds.items()}  # the first epoch compiles
    return {
        name: {"seconds": round(s, 2), "ratio": round(s / middle["plain"], 2)} for name, s in middle.items()
    }


def time_to_plain_best(split: Split, seed: int) -> dict[str, Any]:
    """Training seconds until plain's best validation Hit@10 is reached, for plain and for transport."""
    found: dict[str, Any] = {"seed": seed}
    goal = None
    for method in ("plain", "transport"):
        history = fit(split, Recipe("mf", method, seed=seed)).history
        goal = goal if goal is not None else max(row["validation_hit"] for row in history)
        spent = 0.0
        for row in history:
            spent += row["seconds"]
            if row["validation_hit"] >= goal:
                found[method] = {"seconds": round(spent, 1), "epochs": int(row["epoch"])}
                break
    return found


if __name__ == "__main__":
    main()
