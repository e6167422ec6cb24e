"""What an epoch of transport costs next to a plain one, and how soon each reaches plain's best validation.

    python -m benchmarks.cost ml-1m --data-dir DIR [--model attention] [--seeds 3]

Transport weighs single pairs, so the "plain" epoch of attention is on such pairs too; its default, a softmax,
has a row of its own. Fits to the end (--seeds) have the default settings of both methods. Epochs of the
variants are interleaved in one process and measured in processor time, so that what else the machine does
falls on all alike. Ratios are what counts.
"""

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
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
PAIRS: dict[str, Any] = {"loss": "logistic", "pairs": "sampled"}
OF_SEQUENCES: dict[str, Recipe] = {
    "plain": Recipe("attention", "plain", PAIRS),
    "plain, same hard negatives": Recipe("attention", "plain", PAIRS | {"hard_negatives": 1}),
    "plain, softmax": Recipe("attention", "plain"),
    "transport (margin players)": Recipe("attention", "transport", {"warm_epochs": 0}),
}
EPOCHS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--model", choices=("mf", "attention"), default="mf")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=NUMBER", help="for all variants")
    parser.add_argument("--seeds", type=int, default=0, help="also fit to the end, with so many seeds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    split = split_leave_last_two(read(options.data, data_dir=options.data_dir).interactions)
    chosen = {key: json.loads(value) for key, value in (pair.split("=") for pair in options.set)}
    variants = VARIANTS if options.model == "mf" else OF_SEQUENCES
    variants = {
        name: replace(recipe, settings={**recipe.settings, **chosen}) for name, recipe in variants.items()
    }
    print(json.dumps(epoch_costs(split, variants), indent=2), flush=True)
    for seed in range(options.seeds):
        plain = Recipe(options.model, "plain", chosen)
        print(json.dumps(time_to_plain_best(split, plain, seed), indent=2), flush=True)


def learner_of(recipe: Recipe, split: Split) -> Learner:
    resolved, rng = recipe.resolve(), Rng(recipe.seed)
    scorer = build(recipe.model, resolved.model.model_dump(), sizes_of(split.train))
    scorer.initialise(split.train, rng)
    task = TrainingTask(scorer, split.train, resolved.training, rng, resolved.plain)
    return method_named(recipe.method).learner(task, resolved.method)


def epoch_costs(split: Split, variants: Mapping[str, Recipe]) -> dict[str, Any]:
    """Median processor seconds of an epoch of each variant, and its ratio to the plain one."""
    learners = {name: learner_of(recipe, split) for name, recipe in variants.items()}
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(1, EPOCHS + 1):
        for name, learner in learners.items():
            start = time.process_time()
            learner.run_epoch(number)
            seconds[name].append(time.process_time() - start)
    middle = {name: median(values[1:]) for name, values in seconds.items()}  # the first epoch compiles
    return {
        name: {"seconds": round(s, 2), "ratio": round(s / middle["plain"], 2)} for name, s in middle.items()
    }


def time_to_plain_best(split: Split, plain: Recipe, seed: int) -> dict[str, Any]:
    """Processor seconds until plain's best validation Hit@10 is reached, for plain and for transport."""
    found: dict[str, Any] = {"seed": seed}
    goal = 0.0
    for method in ("plain", "transport"):
        spent: list[float] = []
        began = time.process_time()
        recipe = replace(plain, method=method, seed=seed)
        history = fit(
            split, recipe, watch=lambda row, s=spent, b=began: s.append(time.process_time() - b)
        ).history
        hits = [row["validation_hit"] for row in history]
        goal = goal or max(hits)
        found[method] = {"best": round(max(hits), 4), "of": len(hits)}
        if max(hits) >= goal:  # else it was never reached
            first = next(n for n, hit in enumerate(hits) if hit >= goal)
            found[method] |= {"seconds": round(spent[first], 1), "epochs": first + 1}
    return found


if __name__ == "__main__":
    main()
