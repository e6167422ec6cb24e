"""Hit@10 of users who were kept out of training and folded in by their history, next to training on them.

python -m benchmarks.fold_in [--data ml-100k] [--data-dir DIR] [--held-out 200] [--seeds 2]
"""

import argparse
import json

import numpy as np
import torch

import towpath
from towpath.data.interactions import Histories
from towpath.data.split import Split
from towpath.models.scorer import Scorer
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("--data-dir")
    parser.add_argument("--held-out", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    split = towpath.split(towpath.read(options.data, data_dir=options.data_dir))
    users = np.sort(Rng(0).numpy("held out").choice(split.train.n_users, options.held_out, replace=False))
    rest = without(split, users)
    for start in ("random", "svd"):
        for seed in range(options.seeds):
            print(
                json.dumps({"start": start, "seed": seed, **compare(split, rest, users, start, seed)}),
                flush=True,
            )


def compare(split: Split, rest: Split, users: np.ndarray, start: str, seed: int) -> dict[str, float]:
    known = split.before_test.histories
    _, items = known.pairs_of(users)
    own = Histories(np.concatenate([[0], np.cumsum(known.lengths[users])]), items)
    strangers, everyone = np.arange(len(users)), split.before_test.histories
    partial = towpath.fit(rest, "mf", seed=seed, start=start).scorer
    whole = towpath.fit(split, "mf", seed=seed, start=start).scorer
    popular = towpath.fit(rest, "popularity").scorer
    return {
        "folded_in": hit(partial.fold_in(own), strangers, own, split, users),
        "trained": hit(whole, users, everyone, split, users),
        "popularity": hit(popular, strangers, own, split, users),
    }


def hit(scorer: Scorer, rows: np.ndarray, histories: Histories, split: Split, users: np.ndarray) -> float:
    """The share of the users, rows of the scorer, whose test item is among their best ten."""
    lists = top_k_lists(scorer, rows, histories, 10).items
    target = np.full(split.test.n_users, -2)
    target[split.test.users] = split.test.items
    return float((lists == target[users][:, None]).any(1).mean())


def without(split: Split, users: np.ndarray) -> Split:
    train, validation, test = (
        part.where(~np.isin(part.users, users)) for part in (split.train, split.validation, split.test)
    )
    return Split(train, validation, test, "without the held-out users")


if __name__ == "__main__":
    main()
