"""How the defaults of `mf` were chosen, and how they compare with implicit's ALS of the same dimension.

    python -m benchmarks.defaults choose --data-dir DIR [--sets ml-100k world-0] [--seeds 1]
    python -m benchmarks.defaults compare --data-dir DIR [--seeds 3]

`choose` trains every candidate on every set and prints Hit@10 (full) on the validation part; the test part is
not looked at. The last column is the mean over the sets of a candidate's Hit@10 divided by the set's best.
`compare` trains the default `mf`, plain and with transport, runs implicit's ALS with its own defaults (in the
environment that `benchmarks.peer_environments` makes), and prints Hit@10 on the test part with paired 95 %
intervals over users and seeds. Finished fits are kept in --out, so a run that was stopped goes on.
"""

import argparse
import hashlib
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pyarrow import csv

import towpath
from benchmarks.peer_environments import ROOT, interpreter
from benchmarks.peers import write_events
from towpath.data.sources import read
from towpath.data.split import Split, split_leave_last_two
from towpath.evaluation.comparison import Difference, compare
from towpath.evaluation.evaluate import evaluate
from towpath.evaluation.result import Evaluation
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.factorization import Factorization, FactorizationSettings
from towpath.models.scorer import Scorer, sizes_of
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

SETS = ("ml-100k", "ml-1m", "lastfm-2k", "goodreads-small", "world-0", "world-1", "world-2")
# Each candidate differs from the first in what it names.
CANDIDATES: tuple[dict[str, Any], ...] = (
    {},
    {"negatives": 3},
    {"negatives": 10},
    {"negatives": 40},
    {"l2": 0.001},
    {"l2": 0.002},
    {"l2": 0.004},
    {"learning_rate": 0.01},
    {"hard_negatives": 1},
    {"embedding_dim": 64},
    {"start": "svd", "learning_rate": 0.0003},
    {"start": "svd", "learning_rate": 0.0003, "embedding_dim": 64},
    {"pairs": "catalogue"},
)
METHODS = ("plain", "transport")
PEER = "implicit ALS"


def main() -> None:
    options = _arguments()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    print(choose(options) if options.what == "choose" else compare_all(options))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("choose", "compare"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT.parent / "defaults")
    return parser.parse_args()


def split_of(name: str, data_dir: Path | None) -> Split:
    """The last event of each user tests, the one before validates; worlds are named after their seeds."""
    if name.startswith("world-"):
        return towpath.split(make_latent_world(LatentWorld(), Rng(int(name.removeprefix("world-")))).log)
    if name == "goodreads-small":
        return split_leave_last_two(read(_goodreads(data_dir or Path())).interactions)
    return split_leave_last_two(read(name, data_dir=data_dir).interactions)


def _goodreads(data_dir: Path) -> pa.Table:
    """Users and books in the order of the file, which has no times."""
    columns = csv.ReadOptions(column_names=["user", "item", "rating"])
    table = csv.read_csv(
        data_dir / "goodreads-small" / "ratings.txt", columns, csv.ParseOptions(delimiter="\t")
    )
    return table.select(["user", "item"])


# -- by validation ------------------------------------------------------------------------------------------


def choose(options: argparse.Namespace) -> str:
    """The table of all candidates."""
    hits = np.zeros((len(CANDIDATES), len(options.sets)))
    for column, name in enumerate(options.sets):
        split = split_of(name, options.data_dir)
        for row, settings in enumerate(CANDIDATES):
            runs = [
                _run(options.out, split, Recipe("mf", "plain", settings, seed), "validation")
                for seed in range(options.seeds)
            ]
            hits[row, column] = np.mean([run["hit"] for run in runs])
    shares = (hits / hits.max(axis=0)).mean(axis=1)
    lines = [
        f"| {_label(settings)} | " + " | ".join(f"{100 * h:.2f}" for h in row) + f" | {share:.3f} |"
        for settings, row, share in zip(CANDIDATES, hits, shares, strict=True)
    ]
    title = f"Validation Hit@10 (full) in per cent, mean of {options.seeds} seeds."
    return "\n".join([title, "", *_head("settings", *options.sets, "share of the best"), *lines])


def _label(settings: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items()) or "default"


def _head(*names: str) -> list[str]:
    return ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]


def _run(out: Path, split: Split, recipe: Recipe, *parts: str) -> dict[str, Any]:
    """Processor seconds of a fit and what it scores on these parts of the split; kept on disk."""
    key = json.dumps([split.fingerprint, recipe.resolved(), parts], sort_keys=True)
    path = out / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.json"
    if path.is_file():
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return stored
    began = time.process_time()
    fitted = fit(split, recipe)
    spent = time.process_time() - began
    found = {
        "seconds": spent,
        "settings": recipe.resolved(),
        "validation": [row["validation_hit"] for row in fitted.history],
    } | _scores(fitted.scorer, split, *parts)
    path.write_text(json.dumps(found), encoding="utf-8")
    return found


def _scores(scorer: Scorer, split: Split, *parts: str) -> dict[str, Any]:
    """Hit@10 of validation, or of every user of the test part with its mean under `sampled`."""
    if "test" not in parts:
        return {"hit": float(evaluate(scorer, split, on="validation").per_user["hit"].mean())}
    sampled = evaluate(scorer, split, protocol="sampled").per_user["hit"]
    full = evaluate(scorer, split)
    return {
        "hits": full.per_user["hit"].tolist(),
        "users": full.users.tolist(),
        "sampled": float(sampled.mean()),
    }


# -- against the peer ---------------------------------------------------------------------------------------


def compare_all(options: argparse.Namespace) -> str:
    """The table of the default `mf` and of the peer."""
    lines = [_compare(name, options) for name in options.sets]
    title = f"Test Hit@10 (full) in per cent, mean of {options.seeds} seeds; paired 95 % intervals."
    names = ("plain", "transport", PEER, "plain - ALS", "transport - plain", "sampled, plain", "seconds")
    return "\n".join([title, "", *_head("set", *names), *lines])


def _compare(name: str, options: argparse.Namespace) -> str:
    split = split_of(name, options.data_dir)
    seeds = range(options.seeds)
    runs = {
        method: [_run(options.out, split, Recipe("mf", method, {}, seed), "test") for seed in seeds]
        for method in METHODS
    }
    runs[PEER] = _peer(options.out, split, seeds)
    hits = {label: np.mean([np.mean(run["hits"]) for run in of]) for label, of in runs.items()}
    plain = runs["plain"]
    cells = [
        *(f"{100 * hit:.2f}" for hit in hits.values()),
        gap(runs, "plain", PEER),
        gap(runs, "transport", "plain"),
        f"{100 * np.mean([run['sampled'] for run in plain]):.1f}",
        f"{np.mean([run['seconds'] for run in plain]):.0f}",
    ]
    return f"| {name} | " + " | ".join(cells) + " |"


def gap(runs: dict[str, list[dict[str, Any]]], a: str, b: str) -> str:
    """By how much a is above b, with the paired interval."""
    evaluations = {
        label: [
            Evaluation("full", "test", 10, np.array(run["users"]), {"hit": np.array(run["hits"])}, {})
            for run in runs[label]
        ]
        for label in (b, a)
    }
    gap: Difference = compare(evaluations, rng=Rng(0)).differences[0]
    return f"{100 * gap.mean:+.2f} ({100 * gap.low:+.2f} to {100 * gap.high:+.2f})"


def _peer(out: Path, split: Split, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """What implicit's ALS scores with vectors of our default length, seed by seed; by our own evaluation."""
    python = interpreter("implicit")
    if python is None:
        raise SystemExit("implicit is missing: python -m benchmarks.peer_environments implicit")
    path = out / f"als-{split.fingerprint}-{len(seeds)}.json"
    if not path.is_file():
        with tempfile.TemporaryDirectory() as folder:
            write_events(split, Path(folder))
            script = Path(__file__).with_name("peer_als.py")
            dim = FactorizationSettings().embedding_dim
            subprocess.run([python, script, folder, str(dim), str(len(seeds))], check=True)
            with np.load(Path(folder) / "factors.npz") as factors:
                found = [_scores(_filled(factors, seed, split), split, "test") for seed in seeds]
        path.write_text(json.dumps(found), encoding="utf-8")
    stored: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return stored


def _filled(factors: Any, seed: int, split: Split) -> Scorer:
    """A factorisation with these vectors and no biases."""
    scorer = Factorization(FactorizationSettings(), sizes_of(split.train))
    with torch.no_grad():
        for side in ("users", "items"):
            getattr(scorer, side).weight[:, :-1] = torch.from_numpy(factors[f"{side}_{seed}"])
            getattr(scorer, side).weight[:, -1] = 0
    return scorer.eval()


if __name__ == "__main__":
    main()
