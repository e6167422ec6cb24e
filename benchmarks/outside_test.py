"""A biased training file and a random test file, end to end from the shell, in worlds whose truth is known.

    python -m benchmarks.outside_test [--worlds 10] [--users 700] [--items 400]

For each world two CSV files are written: what its earlier recommender showed (user, item, time, clicked), and
pairs shown at random, twenty for each user. Each method is then run as a user would run it:

    towpath fit train.csv --label-col clicked --model mf --method M --out run
    towpath evaluate run --json                                       on the biased file's own last clicks
    towpath evaluate run --test random.csv --candidates listed --json
    towpath recommend run --all -k 10 --out lists.csv                 whose true clicks the world knows
"""

import argparse
import csv
import io
import json
import platform
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from towpath.cli import main as towpath
from towpath.rng import Rng
from towpath.stats.spread import t_interval
from towpath.worlds.latent import LatentWorld, make_latent_world
from towpath.worlds.world import World

METHODS = {
    "popularity": ("--model", "popularity"),
    "plain": ("--model", "mf"),
    "shown": ("--model", "mf", "--method", "shown"),
    "imitation": ("--model", "mf", "--method", "imitation"),
    "transport": ("--model", "mf", "--method", "transport"),
}
COLUMNS = {"hit": "own test: Hit@10 (full)", "auc": "random test: AUC", "ndcg": "random test: NDCG@10",
           "clicks": "true clicks on ten"}  # fmt: skip
RANDOM_PER_USER = 20
FIRST_SEED = 700


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=10)
    parser.add_argument("--users", type=int, default=700)
    parser.add_argument("--items", type=int, default=400)
    options = parser.parse_args()
    settings = LatentWorld(users=options.users, items=options.items, shown_per_user=40, exploration=0.0)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
    for seed in range(FIRST_SEED, FIRST_SEED + options.worlds):
        world = make_latent_world(settings, Rng(seed))
        with tempfile.TemporaryDirectory() as folder:
            write_files(world, Path(folder), Rng(seed).numpy("random test"))
            for name, words in METHODS.items():
                found[name].append(run_method(words, world, Path(folder) / name))
                print(seed, name, json.dumps(found[name][-1]), flush=True)
    print(
        f"\n{options.worlds} worlds, seeds from {FIRST_SEED}; {platform.processor() or platform.machine()}\n"
    )
    print(table(found))


def write_files(world: World, folder: Path, draw: np.random.Generator) -> None:
    """train.csv, what the earlier recommender showed, and random.csv, what was shown at random."""
    log = world.exposures
    users, items = log.user_ids.ids(log.users), log.item_ids.ids(log.items)
    assert log.times is not None  # worlds have both
    assert log.labels is not None
    shown = zip(users, items, log.times.tolist(), log.labels.astype(int).tolist(), strict=True)
    _write(folder / "train.csv", ("user", "item", "time", "clicked"), shown)
    rows, relevance = [], np.asarray(world.relevance)
    for user in range(log.n_users):
        some = draw.choice(log.n_items, RANDOM_PER_USER, replace=False)
        clicked = (draw.random(RANDOM_PER_USER) < relevance[user, some]).astype(int)
        own = log.user_ids.ids(np.full(RANDOM_PER_USER, user))
        rows += zip(own, log.item_ids.ids(some), clicked.tolist(), strict=True)
    _write(folder / "random.csv", ("user", "item", "clicked"), rows)


def _write(path: Path, header: Sequence[str], rows: object) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)  # type: ignore[arg-type]  # any iterable of rows


def run_method(words: Sequence[str], world: World, run: Path) -> dict[str, float]:
    """The numbers of one method in one world."""
    train, random, lists = run.parent / "train.csv", run.parent / "random.csv", run.parent / "lists.csv"
    _said("fit", train, "--label-col", "clicked", *words, "--out", run, "--json")
    own = json.loads(_said("evaluate", run, "--json"))["metrics"]
    outside = json.loads(_said("evaluate", run, "--test", random, "--candidates", "listed", "--json"))[
        "metrics"
    ]
    _said("recommend", run, "--all", "-k", "10", "--out", lists, "--json")
    return {
        "hit": own["hit"],
        "auc": outside["auc"],
        "ndcg": outside["ndcg"],
        "clicks": true_clicks(lists, world),
    }


def true_clicks(lists: Path, world: World) -> float:
    """The clicks that a user would make on a list, on average, as only the world knows."""
    with lists.open(newline="") as file:
        rows = list(csv.DictReader(file))
    users = world.log.user_ids.codes([row["user"] for row in rows])
    items = world.log.item_ids.codes([row["item"] for row in rows])
    return float(np.asarray(world.relevance)[users, items].sum() / len(np.unique(users)))


def _said(*words: object) -> str:
    """What a command writes to standard output; raises if it fails."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = towpath([str(word) for word in words])
    if code:
        raise RuntimeError(f"towpath {' '.join(map(str, words))}: {err.getvalue()}")
    return out.getvalue()


def table(found: dict[str, list[dict[str, float]]]) -> str:
    """Means over worlds, and the paired difference of true clicks to plain with its interval, as Markdown."""
    lines = ["| method | " + " | ".join(COLUMNS.values()) + " | true clicks over plain |",
             "|---" * (len(COLUMNS) + 2) + "|"]  # fmt: skip
    for name, rows in found.items():
        means = [f"{np.mean([row[key] for row in rows]):.3f}" for key in COLUMNS]
        gains = [row["clicks"] - plain["clicks"] for row, plain in zip(rows, found["plain"], strict=True)]
        gain = t_interval(gains)
        over = "" if name == "plain" else f"{gain.mean:+.2f} ({gain.low:+.2f} to {gain.high:+.2f})"
        lines.append(f"| {name} | {' | '.join(means)} | {over} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
