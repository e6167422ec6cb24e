"""Default attention, ncf and wide_deep against RecTools' and RecBole's defaults of the same models.

    python -m benchmarks.default_models compare --data-dir DIR [--sets ml-100k lastfm-2k] [--seeds 3]
    python -m benchmarks.default_models choose --models ncf --data-dir DIR [--sets ...] [--seeds 1]

`compare` fits ours and the peers' (in the environments that `benchmarks.peer_environments` makes) on the same
split, takes the ten best items of every user of the test part, items that were seen hidden, and scores all
lists by one function: Hit@10 and NDCG@10 over the whole catalogue, with paired 95 % intervals over users and
seeds. RecBole has ids alone, so ours have no side features here. RecBole's SASRec encodes every beginning of
a history by itself, hours for a whole fit: it stops after --sasrec-epochs. RecTools' SASRec stops after three
epochs by default, so it is trained for forty too. RecTools has the loss of gSASRec, which is taken with the
settings of its paper.
`choose` trains every candidate of a model and shows Hit@10 (full) on validation; test is not looked at.
Finished fits are kept in --out, so a run that was stopped goes on; tables are written to --csv.
"""

import argparse
import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.defaults import SETS, gap, split_of
from benchmarks.peer_environments import ROOT, interpreter
from benchmarks.peers import write_events
from towpath.data.split import Split
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.ranking.lists import top_k_lists

K = 10
Run = dict[str, Any]  # users, hits and NDCGs of each, seconds, epochs: as JSON has them


@dataclass(frozen=True)
class Peer:
    """A model of another package, and ours that it is compared with."""

    package: str
    model: str
    ours: str
    label: str
    epochs: int | None = None  # its own default, unless it stops too early to compare with


PEERS = (
    Peer("rectools", "SASRec", "attention", "RecTools SASRec"),
    Peer("rectools", "SASRec", "attention", "RecTools SASRec, 40 epochs", epochs=40),
    Peer("rectools", "gSASRec", "attention", "RecTools gSASRec"),
    Peer("recbole", "SASRec", "attention", "RecBole SASRec"),
    Peer("recbole", "NeuMF", "ncf", "RecBole NeuMF"),
    Peer("recbole", "WideDeep", "wide_deep", "RecBole WideDeep"),
)
OURS: dict[str, dict[str, Any]] = {"attention": {}, "ncf": {}, "wide_deep": {"side_features": False}}
# Each candidate differs from the defaults in what it names.
CANDIDATES: dict[str, tuple[dict[str, Any], ...]] = {
    "attention": (
        {},
        {"dropout": 0.1},
        {"dropout": 0.3},
        {"heads": 1},
        {"heads": 4},
        {"heads": 1, "softmax_negatives": 512},
        {"blocks": 3},
        {"batch_size": 512},
        {"softmax_negatives": 2048},
        {"embedding_dim": 128, "dropout": 0.3},
    ),
    "ncf": (
        {},
        {"negatives": 10},
        {"negatives": 20, "l2": 0.0015},
        {"learning_rate": 0.001},
        {"embedding_dim": 64},
        {"patience": 10},
    ),
    "wide_deep": ({}, {"negatives": 10}, {"negatives": 20, "l2": 0.0015}, {"l2": 0.0005}, {"patience": 10}),
}
COMPARED = (
    "set", "model", "Hit@10", "NDCG@10", "seconds", "peer", "its Hit@10", "its NDCG@10", "its seconds",
    "its epochs", "difference of Hit@10",
)  # fmt: skip


def main() -> None:
    options = _arguments()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    table = _compare(options) if options.what == "compare" else _choose(options)
    for row in table:
        print("| " + " | ".join(row) + " |")
    if options.csv is not None:
        with options.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table)


# -- against the peers --------------------------------------------------------------------------------------


def _compare(options: argparse.Namespace) -> list[list[str]]:
    rows = [list(COMPARED)]
    for name in options.sets:
        split = split_of(name, options.data_dir)
        rows += [
            [name, peer.ours, *_row(split, peer, options)]
            for peer in PEERS
            if peer.ours in options.models and peer.label not in options.without
        ]
    return rows


def _row(split: Split, peer: Peer, options: argparse.Namespace) -> list[str]:
    seeds = range(options.seeds)
    ours = [_ours(split, Recipe(peer.ours, "plain", OURS[peer.ours], seed), options.out) for seed in seeds]
    theirs = [_theirs(split, peer, seed, options) for seed in range(options.peer_seeds)]
    runs = {peer.ours: ours, peer.label: [theirs[seed % len(theirs)] for seed in seeds]}
    epochs = [run["epochs"] for run in theirs]
    return [
        *_told(ours),
        peer.label,
        *_told(theirs),
        f"{min(epochs)} to {max(epochs)}" if min(epochs) < max(epochs) else str(epochs[0]),
        gap(runs, peer.ours, peer.label),
    ]


def _told(runs: list[Run]) -> list[str]:
    """Hit and NDCG with their spread over seeds, and the mean of the seconds."""
    measures = [[100 * np.mean(run[measure]) for run in runs] for measure in ("hits", "ndcgs")]
    spreads = [f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else "" for values in measures]
    cells = [f"{np.mean(values):.2f}{spread}" for values, spread in zip(measures, spreads, strict=True)]
    return [*cells, f"{np.mean([run['seconds'] for run in runs]):.0f}"]


def _ours(split: Split, recipe: Recipe, out: Path) -> Run:
    def train() -> Run:
        began = time.process_time()
        fitted = fit(split, recipe)
        spent = time.process_time() - began
        users = split.test.users.astype(np.int64)
        lists = top_k_lists(fitted.scorer, users, split.before_test.histories, K)
        return {
            **scored(split, lists.items),
            "seconds": spent,
            "epochs": len(fitted.history),
            "validation": [row["validation_hit"] for row in fitted.history],
        }

    return _kept(out, [split.fingerprint, recipe.resolved()], train)


def _theirs(split: Split, peer: Peer, seed: int, options: argparse.Namespace) -> Run:
    most = options.sasrec_epochs if peer.label == "RecBole SASRec" else peer.epochs
    limit = [] if most is None else [str(most)]

    def train() -> Run:
        python = interpreter(peer.package)
        if python is None:
            raise SystemExit(f"{peer.package} is missing: python -m benchmarks.peer_environments")
        with tempfile.TemporaryDirectory() as folder:
            write_events(split, Path(folder))
            script = Path(__file__).with_name("peer_defaults.py")
            told = subprocess.run(
                [python, script, peer.package, peer.model, folder, str(seed), *limit],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            ).stdout
            with np.load(Path(folder) / "lists.npz") as lists:
                return {**scored(split, lists["items"]), **json.loads(told.splitlines()[-1])}

    return _kept(options.out, [split.fingerprint, peer.label, seed, limit], train)


def scored(split: Split, lists: NDArray[np.int64]) -> Run:
    """Hit@10 and NDCG@10 of each event of the test part, by the list (n, 10) of its user.

    NDCG = 1 / log2(1 + place)    as one item is relevant
    """
    fresh = ~np.isin(split.test.pair_keys(), split.before_test.pair_keys())  # lists cannot show what was seen
    found = lists[fresh] == split.test.items[fresh, None]
    ndcgs = (found / np.log2(np.arange(2, K + 2))).sum(1)
    users = split.test.users[fresh].tolist()
    return {"users": users, "hits": found.any(1).astype(float).tolist(), "ndcgs": ndcgs.tolist()}


def _kept(out: Path, key: Any, make: Callable[[], Run]) -> Run:
    """What `make` gives, or gave before for the same key."""
    path = out / f"{hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]}.json"
    if not path.is_file():
        print("running", key[1], file=sys.stderr, flush=True)
        path.write_text(json.dumps(make()), encoding="utf-8")
    stored: Run = json.loads(path.read_text(encoding="utf-8"))
    return stored


# -- by validation ------------------------------------------------------------------------------------------


def _choose(options: argparse.Namespace) -> list[list[str]]:
    """A row for each candidate: validation Hit@10 on every set, and the mean share of the set's best."""
    (model,) = options.models
    candidates = CANDIDATES[model]
    hits = np.zeros((len(candidates), len(options.sets)))
    for column, name in enumerate(options.sets):
        split = split_of(name, options.data_dir)
        for row, settings in enumerate(candidates):
            runs = [_validated(split, model, settings, seed, options.out) for seed in range(options.seeds)]
            hits[row, column] = np.mean([max(run["validation"]) for run in runs])
    shares = (hits / hits.max(axis=0)).mean(axis=1)
    lines = [
        [_label(settings), *(f"{100 * hit:.2f}" for hit in row), f"{share:.3f}"]
        for settings, row, share in zip(candidates, hits, shares, strict=True)
    ]
    return [["settings", *options.sets, "share of the best"], *lines]


def _validated(split: Split, model: str, settings: dict[str, Any], seed: int, out: Path) -> Run:
    recipe = Recipe(model, "plain", OURS[model] | settings, seed)

    def train() -> Run:
        began = time.process_time()
        history = fit(split, recipe).history
        spent = time.process_time() - began
        return {"seconds": spent, "validation": [row["validation_hit"] for row in history]}

    return _kept(out, [split.fingerprint, recipe.resolved(), "validation"], train)


def _label(settings: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items()) or "default"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("choose", "compare"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=("ml-100k", "lastfm-2k"))
    parser.add_argument("--models", nargs="+", choices=tuple(OURS), default=tuple(OURS))
    parser.add_argument("--without", nargs="+", choices=[p.label for p in PEERS], default=())
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--peer-seeds", type=int, default=1)
    parser.add_argument("--sasrec-epochs", type=int, default=5, help="of RecBole's SASRec, at most")
    parser.add_argument("--out", type=Path, default=ROOT.parent / "default-models")
    parser.add_argument("--csv", type=Path, help="where the table is written")
    return parser.parse_args()


if __name__ == "__main__":
    main()
