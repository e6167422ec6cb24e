"""What was tried to make an epoch of default attention shorter, in processor seconds next to the default.

    python -m benchmarks.attention_tried ml-1m --data-dir DIR --compile [--rounds 3] [--of-users 20]

The default recipe (sampled softmax, float32), the softmax over all items, both with products in bfloat16, and
with --compile the blocks under `torch.compile`, on one thread. An epoch here goes over every 20th user, with
the items of all. Variants take turns in every round, after a round to warm up, so that what else the machine
does falls on all alike. Whether the processor has instructions for bfloat16 decides about its rows.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import torch

from benchmarks.attention import learner_of, timed
from towpath.data.sources import read
from towpath.data.split import split_leave_last_two
from towpath.models.attention import Attention
from towpath.training.plain import PlainLearner

DEFAULT, COMPILED = "sampled softmax: the default", "sampled softmax, blocks under torch.compile"
VARIANTS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "sampled softmax, bfloat16": {"softmax_dtype": "bfloat16"},
    "all items": {"softmax_negatives": 0},
    "all items, bfloat16": {"softmax_negatives": 0, "softmax_dtype": "bfloat16"},
}


def main() -> None:
    options = _arguments()
    torch.set_num_threads(1)
    train = split_leave_last_two(read(options.data, data_dir=options.data_dir).interactions).train
    some = train.where(train.users % options.of_users == 0)
    learners = {
        name: learner_of(some, {"history_length": 200, "windows": "random"} | settings)
        for name, settings in (VARIANTS | ({COMPILED: {}} if options.compile else {})).items()
    }
    if options.compile:
        _compile_blocks(learners[COMPILED])
    found: dict[str, list[float]] = {name: [] for name in learners}
    for number in range(options.rounds + 1):
        for name, learner in learners.items():
            _, used = timed(learner, number + 1)
            print(f"{name}: {used:.2f} s", flush=True)
            found[name] += [used] if number else []
    rows = rows_of(found)
    print(*(f"| {' | '.join(row)} |" for row in rows), sep="\n")
    print(f"instructions for bfloat16: {'yes' if _has_bfloat16() else 'no'}")
    if options.csv is not None:
        with options.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def _compile_blocks(learner: PlainLearner) -> None:
    """Replace what each block computes by what torch's compiler makes of it, for batches of any size."""
    assert isinstance(learner.scorer, Attention)
    for block in learner.scorer.blocks:
        block.forward = torch.compile(block.forward, dynamic=True)


def _has_bfloat16() -> bool:
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def rows_of(found: dict[str, list[float]]) -> list[list[str]]:
    """The lowest of each variant, its range over rounds, and how many times the default's it is."""
    rows = [
        [
            name,
            f"{min(used):.2f}",
            f"{min(used):.2f} to {max(used):.2f}",
            f"{min(used) / min(found[DEFAULT]):.2f}",
        ]
        for name, used in found.items()
    ]
    return [["an epoch with", "processor seconds", "range over rounds", "times the default"], *rows]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--of-users", type=int, default=20, help="every so manyth user is trained on")
    parser.add_argument("--compile", action="store_true", help="with torch.compile, which takes a compiler")
    parser.add_argument("--csv", type=Path, help="where the table is written")
    return parser.parse_args()


if __name__ == "__main__":
    main()
