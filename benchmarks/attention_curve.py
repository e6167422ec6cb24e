"""What attention has learned after how many processor seconds, by the defaults and by those of before.

    python -m benchmarks.attention_curve ml-1m --data-dir DIR --epochs before=6 defaults=4 --out curve.csv

Each recipe is trained for its own number of epochs, over which its rate falls to zero. A row is an epoch: the
processor seconds of training and validation so far, and Hit@10 and NDCG@10 over the whole catalogue on the
validation clicks. Test clicks are not looked at. Rows are added to FILE as they come. `--set KEY=VALUE`
changes both recipes, as in `towpath fit`.
"""

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import torch

from towpath.cli.options import parse_settings
from towpath.data.sources import read
from towpath.data.split import Split, split_leave_last_two
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.training.fit import EpochMetrics

# The defaults before: no sampled softmax, no distances, one head, and nothing left out that a user has seen.
BEFORE: dict[str, Any] = {
    "heads": 1,
    "softmax_negatives": 0,
    "softmax_items": "all",
    "relative_positions": False,
    "learning_rate": 1e-3,
}
RECIPES: dict[str, dict[str, Any]] = {"before": BEFORE, "defaults": {}}
COLUMNS = ("recipe", "epochs", "epoch", "processor seconds", "validation Hit@10", "validation NDCG@10")


def main() -> None:
    options = _arguments()
    torch.set_num_threads(1)
    split = split_leave_last_two(read(options.data, data_dir=options.data_dir).interactions)
    if not options.out.exists():
        _add(options.out, COLUMNS)
    for name, epochs in options.epochs:
        _train(split, name, epochs, parse_settings(options.set), options)


def _train(split: Split, name: str, epochs: int, asked: dict[str, Any], options: argparse.Namespace) -> None:
    settings = RECIPES[name] | asked | {"epochs": epochs, "patience": epochs}
    recipe = Recipe("attention", "plain", settings, options.seed)
    began = time.process_time()

    def note(row: EpochMetrics) -> None:
        used = round(time.process_time() - began, 1)
        found = (f"{100 * row[key]:.2f}" for key in ("validation_hit", "validation_ndcg"))
        _add(options.out, (name, epochs, int(row["epoch"]), used, *found))

    fit(split, recipe, watch=note)


def _add(file: Path, row: tuple[object, ...]) -> None:
    print(*row, sep=", ", flush=True)
    with file.open("a", encoding="utf-8", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerow(row)


def _recipe(text: str) -> tuple[str, int]:
    name, _, epochs = text.partition("=")
    if name not in RECIPES or not epochs.isdigit() or epochs == "0":
        raise argparse.ArgumentTypeError(f"{text!r}: one of {', '.join(RECIPES)}, = and a number of epochs")
    return name, int(epochs)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--epochs", type=_recipe, nargs="+", required=True, metavar="RECIPE=N")
    parser.add_argument("--out", type=Path, required=True, help="a CSV file; rows are added to it")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
