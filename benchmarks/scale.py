"""Growth of time and memory over 1, 10 and 100 million events on one machine, from files to lists.

python -m benchmarks.scale 1 10 100 --folder FOLDER: makes events with text as ids, of a tenth as many users
and items, at most a million of each. Then it takes each step in a process of its own: prepare (files to a
split on disk), fit (one epoch, 32 dimensions), attention (one epoch over windows of at most 20 events),
evaluate (full protocol, 1,000 users) and lists (10 items for 10,000 users). What is done is kept in the
folder, a line of JSON for each step.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNK = 2_000_000
EVALUATED, LISTED = 1_000, 10_000
STEPS = ("prepare", "fit", "attention", "evaluate", "lists")


def sizes(millions: int) -> tuple[int, int, int]:
    """Events, users and items."""
    events = millions * 1_000_000
    return events, min(events // 10, 1_000_000), min(events // 10, 1_000_000)


def make(folder: Path, millions: int) -> Path:
    """Events whose items have Zipf's popularity and whose users lean to items of their own tenth."""
    target, (events, users, items) = folder / f"events-{millions}", sizes(millions)
    if target.is_dir():
        return target
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for number, start in enumerate(range(0, events, CHUNK)):
        draw = np.random.default_rng(number)
        rows = min(CHUNK, events - start)
        who = draw.integers(users, size=rows)
        popular = np.exp(draw.random(rows) * np.log(items)).astype(np.int64) % items
        own = draw.random(rows) < 0.5
        what = np.where(own, popular // 10 * 10 + who % 10, popular) % items
        ids = [
            pa.array(np.char.add(letter, codes.astype("U8")))
            for letter, codes in (("user-", who), ("i", what))
        ]
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
        fit = ["--set", "epochs=1", "--set", "history_length=20", "--set", "embedding_dim=32"]
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
    some = np.zeros(split.train.n_users, dtype=bool)
    some[:: max(1, split.train.n_users // EVALUATED)] = True
    sampled = replace(split, test=split.test.where(some[split.test.users]))
    print(json.dumps(evaluate(load(run), sampled).metrics()))


def measured(name: str, folder: Path, millions: int) -> dict[str, object]:
    """One step in a process of its own: seconds, and the most that it held, with and without mapped files."""
    words = [sys.executable, "-m", "benchmarks.scale", str(millions), "--step", name, "--folder", str(folder)]
    began = time.monotonic()
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    peak = {"VmHWM": 0, "RssAnon": 0}
    while process.poll() is None:
        try:
            said = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        found = {
            line.split(":")[0]: line.split()[1] for line in said.splitlines() if line.startswith(tuple(peak))
        }
        peak = {key: max(value, int(found.get(key, 0))) for key, value in peak.items()}
        time.sleep(0.2)
    out = process.communicate()[0]
    seconds = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"{name} of {millions} million ended with {process.returncode}")
    told = json.loads(out.strip().splitlines()[-1]) if name == "evaluate" else {}
    return {
        "millions": millions,
        "step": name,
        "seconds": round(seconds, 1),
        "peak_mb": peak["VmHWM"] // 1024,
        "peak_anonymous_mb": peak["RssAnon"] // 1024,
        "disk_mb": sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) // 2**20,
        **told,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("millions", type=int, nargs="+")
    parser.add_argument("--folder", type=Path, default=Path("build/scale"))
    parser.add_argument("--step", choices=STEPS)
    asked = parser.parse_args()
    if asked.step:
        return step(asked.step, asked.folder, asked.millions[0])
    kept = asked.folder / "scale.jsonl"
    for millions in asked.millions:
        make(asked.folder, millions)
        for name in STEPS:
            rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
            if not any((row["millions"], row["step"]) == (millions, name) for row in rows):
                row = measured(name, asked.folder, millions)
                with kept.open("a") as out:
                    out.write(json.dumps(row) + "\n")
                print(row, flush=True)
    return None


if __name__ == "__main__":
    main()
