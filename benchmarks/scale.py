"""Growth of time and memory over 1, 10 and 100 million events on one machine, from files to lists.

python -m benchmarks.scale 1 10 100 --folder FOLDER: makes events of a million users and a million items with
text as ids. Then it takes each step in a process of its own: prepare (files to a split on disk), fit (one
epoch, 32 dimensions), attention (one epoch over a stream of windows, one of at most 20 events for each user),
evaluate (full protocol, 1,000 users) and lists (10 items for 10,000 users). What is done is kept in the
folder, a line of JSON for each step, and not done again.
"""

import argparse
import csv
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peak_memory import measure

USERS = ITEMS = 1_000_000
CHUNK = 2_000_000
EVALUATED, LISTED = 1_000, 10_000
STEPS = ("prepare", "fit", "attention", "evaluate", "lists")


def make(folder: Path, millions: int) -> Path:
    """Events whose items have Zipf's popularity and whose users lean to items of their own tenth."""
    target, events = folder / f"events-{millions}", millions * 1_000_000
    if target.is_dir():
        return target
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    user_ids = pa.array([f"user-{n}" for n in range(USERS)])
    item_ids = pa.array([f"item-{n}" for n in range(ITEMS)])
    for number, start in enumerate(range(0, events, CHUNK)):
        draw = np.random.default_rng(number)
        rows = min(CHUNK, events - start)
        who = draw.integers(USERS, size=rows)
        popular = np.exp(draw.random(rows) * np.log(ITEMS)).astype(np.int64) % ITEMS
        own = draw.random(rows) < 0.5
        what = np.where(own, popular // 10 * 10 + who % 10, popular) % ITEMS
        ids = user_ids.take(pa.array(who)), item_ids.take(pa.array(what))
        table = pa.table({"user": ids[0], "item": ids[1], "time": start + np.arange(rows)})
        pq.write_table(table, partial / f"part-{number:05}.parquet", compression="zstd")
    partial.rename(target)
    return target


def step(name: str, folder: Path, millions: int) -> None:
    """Take one step in this process."""
    from towpath.cli import main

    split, run = folder / f"split-{millions}", folder / f"run-{millions}"
    fit = ["--set", "epochs=1", "--set", "negatives=4"]
    if name == "prepare":
        words = ["data", "prepare", folder / f"events-{millions}", "--out", split]
    elif name == "fit":
        words = ["fit", split, "--model", "mf", "--set", "embedding_dim=32", *fit, "--out", run]
    elif name == "attention":
        # The loss of the defaults: a softmax over 512 items that are drawn for each batch.
        fit = ["--set", "epochs=1", "--set", "history_length=20", "--set", "embedding_dim=32"]
        fit += ["--set", "batch_size=8192"]
        words = ["fit", split, "--model", "attention", *fit, "--out", folder / f"attention-{millions}"]
    elif name == "evaluate":
        return evaluate_some(run)
    else:
        users = pq.read_table(split / "users.parquet").column("id").slice(0, LISTED)
        pq.write_table(pa.table({"user": users}), folder / "some.parquet")
        words = ["recommend", run, "--users", folder / "some.parquet", "--out", folder / "lists.parquet"]
    code = main([*map(str, words), "--json"])
    if code:
        raise SystemExit(code)
    return None


def evaluate_some(run: Path) -> None:
    from dataclasses import replace

    from towpath import evaluate, load
    from towpath.data.split import load_split

    split = load_split(run / "split")
    some, users = np.zeros(split.train.n_users, dtype=bool), np.unique(split.test.users)
    some[users[:: max(1, len(users) // EVALUATED)][:EVALUATED]] = True
    sampled = replace(split, test=split.test.where(some[split.test.users]))
    print(json.dumps(evaluate(load(run), sampled).metrics()))


def measured(name: str, folder: Path, millions: int) -> dict[str, object]:
    """What one step took in a process of its own."""
    words = ("-m", "benchmarks.scale", str(millions), "--step", name, "--folder", str(folder))
    found = measure([sys.executable, *words])
    told = json.loads(found.output.strip().splitlines()[-1]) if name == "evaluate" else {}
    return {
        "millions": millions,
        "step": name,
        "cpu_seconds": round(found.cpu_seconds, 1),
        "seconds": round(found.seconds, 1),
        "peak_mb": found.megabytes,
        "peak_without_files_mb": round(found.own / 1e6),
        **told,
    }


def write_table(kept: Path, target: Path) -> None:
    """The kept lines as a CSV file."""
    columns = {
        "step": "step",
        "million events": "millions",
        "processor s": "cpu_seconds",
        "peak MB": "peak_mb",
        "without pages of files": "peak_without_files_mb",
    }
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    rows.sort(key=lambda row: (STEPS.index(row["step"]), row["millions"]))
    with target.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([row[key] for key in columns.values()] for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("millions", type=int, nargs="+")
    parser.add_argument("--folder", type=Path, default=Path("build/scale"))
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--csv", type=Path, help="write what is kept in the folder as a table")
    parser.add_argument("--steps", nargs="*", choices=STEPS, default=STEPS, help="do these only")
    asked = parser.parse_args()
    if asked.step:
        return step(asked.step, asked.folder, asked.millions[0])
    kept = asked.folder / "scale.jsonl"
    if asked.csv:
        return write_table(kept, asked.csv)
    for millions in asked.millions:
        make(asked.folder, millions)
        for name in asked.steps:
            rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
            if not any((row["millions"], row["step"]) == (millions, name) for row in rows):
                row = measured(name, asked.folder, millions)
                with kept.open("a") as out:
                    out.write(json.dumps(row) + "\n")
                print(row, flush=True)
    return None


if __name__ == "__main__":
    main()
