"""Us and the peers side by side in one run: one table with ratios and the hardware.

    python -m benchmarks.peers [ml-1m] --data-dir DIR [--dim 32] [--threads 2] [--repeats 3]
        [--only PART ...] [--minutes M]

Same data, same split (the last event tests, the one before validates), same dimension, same threads; every
measurement is a process of its own, one after another, so that each has the machine to itself, and the whole
is repeated: the table has medians with the lowest and the highest. Times of training leave evaluation out.
Each measurement is kept in --out as it ends, so a run that was stopped goes on, --only runs some of them, and
--minutes begins no more of them after so many; remove the folder `parts` there to measure anew. A whole run
takes about three quarters of an hour.
The peers live in environments of their own, which `python -m benchmarks.peer_environments` makes; one that is
missing is said to be missing.

Ours wait for each other's threads as every `towpath` command does, a peer's as the peer does by default. That
costs a peer much where other programs are busy, so the networks are also compared by processor time on one
thread, and the table says how busy the machine was.
"""

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peer_environments import ROOT, interpreter
from benchmarks.peer_lines import COLUMNS, at, lines, to_cells, to_row
from towpath.data.sources import read
from towpath.data.split import Split, split_leave_last_two

HERE = Path(__file__).parent
# What each process measures, in the order of a whole run; those of one peer need its environment.
ONE_THREAD = "-one"
NETWORKS = ("neumf", "widedeep", "neumf-one", "widedeep-one")
OURS = ("epochs", "curves", "ranking", "memory", "growth", *NETWORKS, "game", "threads", "startup")
PEERS = {
    "implicit": "implicit",
    "recbole": "recbole",
    **{f"recbole-{name}": "recbole" for name in NETWORKS},
    "rectools": "rectools",
    "ingest": "polars",
}
# Threads sleep while they wait for each other, as in every `towpath` command.
PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}
# In what a measurement answers: how many processes wanted a core when it began.
LOAD = "load"
# For a second thread and for the game: a data set of which an epoch takes a second, and a fit some seconds.
SMALL = "ml-100k"


def main() -> None:
    options = _arguments()
    parts = options.out / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.only != []:
            for data, place in ((options.data, folder), (SMALL, folder / SMALL)):
                place.mkdir(exist_ok=True)
                write_events(split_leave_last_two(read(data, data_dir=options.data_dir).interactions), place)
        end = time.monotonic() + 60 * options.minutes
        for repeat in range(options.repeats):
            for part in (*OURS, *PEERS) if options.only is None else options.only:
                path = parts / f"{options.data}-{repeat}-{part}.json"
                if not path.exists() and time.monotonic() < end:
                    load = os.getloadavg()[0]
                    found = _measure(part, folder, options)
                    if found is not None:
                        path.write_text(json.dumps(found | {LOAD: load}), encoding="utf-8")
    found = [_kept(parts, repeat, options) for repeat in range(options.repeats)]
    table = to_table(found, options)
    (options.out / "peers.json").write_text(json.dumps(found, indent=2), encoding="utf-8")
    (options.out / "peers.md").write_text(table, encoding="utf-8")
    write_csv(found, options.out / "peers.csv")
    print(table)


def _kept(parts: Path, repeat: int, options: argparse.Namespace) -> dict[str, Any]:
    """What was measured so far in one repetition."""
    paths = {part: parts / f"{options.data}-{repeat}-{part}.json" for part in (*OURS, *PEERS)}
    return {
        part: json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        for part, path in paths.items()
    }


def _measure(part: str, folder: Path, options: argparse.Namespace) -> dict[str, Any] | None:
    """One measurement, in a process of its own."""
    threads = 1 if part.endswith(ONE_THREAD) else options.threads
    place = folder / SMALL if part == "game" else folder
    arguments = [str(place), str(threads), str(options.dim)]
    data = ["--data-dir", str(options.data_dir)] if options.data_dir else []
    if part == "threads":
        return _ask([sys.executable, "-m", "benchmarks.threads", SMALL, *data, "--repeats", "1", "--json"])
    if part in OURS:
        name = part.removesuffix(ONE_THREAD)
        return _ask([sys.executable, "-m", "benchmarks.peer_towpath", name, *arguments])
    return _ask_peer(part, arguments, options)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", nargs="?", default="ml-1m")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--only", nargs="*", choices=(*OURS, *PEERS), help="these measurements; none: join what there is"
    )
    parser.add_argument("--minutes", type=float, default=inf, help="begin no measurement after so many")
    parser.add_argument("--out", type=Path, default=ROOT.parent / "bench")
    return parser.parse_args()


def write_events(split: Split, folder: Path) -> None:
    """The three parts as arrays of codes, and `seen`, which is hidden when test is evaluated."""
    parts = {"train": split.train, "validation": split.validation, "test": split.test}
    arrays = {
        f"{name}_{side}": getattr(part, side) for name, part in parts.items() for side in ("users", "items")
    }
    for side in ("users", "items"):
        arrays[f"seen_{side}"] = np.concatenate([arrays[f"train_{side}"], arrays[f"validation_{side}"]])
    np.savez(folder / "events.npz", shape=[split.train.n_users, split.train.n_items], **arrays)


def _ask_peer(part: str, arguments: list[str], options: argparse.Namespace) -> dict[str, Any] | None:
    """What a peer takes; RecTools and Polars are asked by benchmarks of our own that compare with them."""
    python = interpreter(PEERS[part])
    if python is None:
        print(f"{part} is missing: python -m benchmarks.peer_environments {PEERS[part]}", file=sys.stderr)
        return None
    if part == "ingest":
        no_budget = ("--most-seconds", "inf", "--most-gigabytes", "inf")
        return _ask([sys.executable, "-m", "benchmarks.ingest", "--polars", *no_budget])
    if part == "rectools":
        data = ["--data-dir", str(options.data_dir)] if options.data_dir else []
        ours = [
            sys.executable,
            "-m",
            "benchmarks.attention",
            options.data,
            *data,
            "--only-rectools",
            "--epochs",
            "2",
        ]
        return _ask([*ours, "--rectools-python", str(python), "--threads", str(options.threads)])
    models = {"recbole-neumf": ["NeuMF"], "recbole-widedeep": ["WideDeep"]}
    script, model = HERE / f"peer_{PEERS[part]}.py", models.get(part.removesuffix(ONE_THREAD), [])
    return _ask([str(python), str(script), *arguments, *model])


def _ask(command: list[str]) -> dict[str, Any] | None:
    """What a measurement answers, or None with what it said when it broke."""
    print("running", *command[1:4], file=sys.stderr, flush=True)
    # Ours wait as the command line does; a peer waits as it does by default.
    environment = os.environ | PASSIVE if command[0] == sys.executable else None
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    text = done.stdout.strip()
    # All answer in their last line, but for a table of attention that people read too.
    return json.loads(text if text.startswith("{") else text.splitlines()[-1])


def to_table(found: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """The table, with what it was measured on, and how good everybody became."""
    head = (
        "| what | towpath | other | who | ratio | wanted at most | reached |\n|---|---|---|---|---|---|---|"
    )
    best = {
        f"{name} {kind}": max(
            (hit for one in found for curve in at(one, name, kind) or [] for _, hit in curve), default=0
        )
        for name, kind in (
            ("curves", "plain"),
            ("curves", "few"),
            ("curves", "svd"),
            ("implicit", "bpr"),
            ("implicit", "als"),
        )
    }
    return "\n".join(
        [
            f"# Other packages: {options.data}, {options.dim} dimensions, {options.threads} threads",
            "",
            f"{_processor()}, {os.cpu_count()} cores{_loads(found)}. Medians of {len(found)} repetitions, "
            "with the lowest and the highest in brackets.",
            "",
            head,
            *(to_row(repeated) for repeated in zip(*map(lines, found), strict=True)),
            "",
            "Best test Hit@10 on the way: "
            + ", ".join(f"{name} {hit:.2%}" for name, hit in best.items())
            + ".",
            *(f"{part} is missing or failed." for part in (*OURS, *PEERS) if found[0][part] is None),
            "",
        ]
    )


def write_csv(found: Sequence[dict[str, Any]], path: Path) -> None:
    """The rows of the table as a file from which pages are made."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows(to_cells(repeated) for repeated in zip(*map(lines, found), strict=True))


def _loads(found: Sequence[dict[str, Any]]) -> str:
    """How busy the machine was when measurements began."""
    loads = [part[LOAD] for one in found for part in one.values() if part and LOAD in part]
    return f", load {min(loads):.1f} to {max(loads):.1f} when measurements began" if loads else ""


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    models = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
