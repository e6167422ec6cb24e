"""Us and the peers side by side in one run: one table with ratios and the hardware.

    python -m benchmarks.peers [ml-1m] --data-dir DIR [--dim 32] [--threads 2] [--repeats 3]

Same data, same split (the last event tests, the one before validates), same dimension, same threads; every
measurement is a process of its own, one after another, so that each has the machine to itself, and the whole
is repeated: the table has medians with the lowest and the highest. Times of training leave evaluation out.
The peers live in environments of their own, which `python -m benchmarks.peer_environments` makes; one that is
missing is said to be missing.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.peer_environments import ROOT, interpreter
from towpath.data.sources import read
from towpath.data.split import Split, split_leave_last_two

HERE = Path(__file__).parent
OURS = ("epochs", "curves", "ranking", "memory", "growth")
PEERS = ("implicit", "recbole", "rectools")
# The best test Hit@10 of implicit's BPR, and what its ALS reaches, on MovieLens 1M with 32 dimensions.
BPR_QUALITY, ALS_QUALITY = 0.065, 0.083


@dataclass(frozen=True)
class Line:
    """One comparison: numbers of ours and of a peer, and the ratio that is wanted at most (theirs is one)."""

    what: str
    ours: float | None
    theirs: float | None
    peer: str
    wanted: float
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        return self.ours / self.theirs if self.ours is not None and self.theirs else None


def to_row(repeated: Sequence[Line]) -> str:
    """A row of the table from the repetitions of one comparison: medians, and in brackets their range."""
    one = repeated[0]
    ours, theirs, ratios = (
        [v for v in column if v is not None]
        for column in zip(*((line.ours, line.theirs, line.ratio) for line in repeated), strict=True)
    )
    verdict = "not measured" if not ratios else "yes" if median(ratios) <= one.wanted else "**no**"
    cells = [_shown(ours, f" {one.unit}"), _shown(theirs, f" {one.unit}"), one.peer, _shown(ratios, "")]
    return f"| {one.what} | {' | '.join(cells)} | {one.wanted:.3g} | {verdict} |"


def main() -> None:
    options = _arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_events(split_leave_last_two(read(options.data, data_dir=options.data_dir).interactions), folder)
        arguments = [str(folder), str(options.threads), str(options.dim)]
        found = [_measure(arguments, options) for _ in range(options.repeats)]
    table = to_table(found, options)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "peers.json").write_text(json.dumps(found, indent=2), encoding="utf-8")
    (options.out / "peers.md").write_text(table, encoding="utf-8")
    print(table)


def _measure(arguments: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Everything once, ours and theirs."""
    ours = {kind: _ask([sys.executable, "-m", "benchmarks.peer_towpath", kind, *arguments]) for kind in OURS}
    return ours | {peer: _ask_peer(peer, arguments, options) for peer in PEERS}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", nargs="?", default="ml-1m")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=3)
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


def _ask_peer(peer: str, arguments: list[str], options: argparse.Namespace) -> dict[str, Any] | None:
    """What a peer takes; RecTools is asked by `benchmarks.attention`, whose epochs alternate with its own."""
    python = interpreter(peer)
    if python is None:
        print(f"{peer} is missing: python -m benchmarks.peer_environments {peer}", file=sys.stderr)
        return None
    if peer == "rectools":
        data = ["--data-dir", str(options.data_dir)] if options.data_dir else []
        ours = [sys.executable, "-m", "benchmarks.attention", options.data, *data]
        return _ask([*ours, "--rectools-python", str(python), "--threads", str(options.threads)])
    return _ask([str(python), str(HERE / f"peer_{peer}.py"), *arguments])


def _ask(command: list[str]) -> dict[str, Any] | None:
    """What a measurement answers, or None with what it said when it broke."""
    print("running", *command[1:4], file=sys.stderr, flush=True)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        print(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    text = done.stdout.strip()
    # All answer in their last line, but for a table of attention that people read too.
    return json.loads(text if text.startswith("{") else text.splitlines()[-1])


def lines(found: dict[str, Any]) -> list[Line]:
    """Every comparison; what was not measured is None."""
    plain = at(found, "epochs", "plain", "seconds")
    one_negative = at(found, "epochs", "plain, one negative", "seconds")
    transport = at(found, "epochs", "transport", "seconds")
    fair, good = f"to test Hit@10 of {BPR_QUALITY:.1%}", f"to test Hit@10 of {ALS_QUALITY:.1%}, start=svd"
    to_fair = (
        typical(at(found, *place), BPR_QUALITY) for place in (("curves", "plain"), ("implicit", "bpr"))
    )
    to_good = (typical(at(found, *place), ALS_QUALITY) for place in (("curves", "svd"), ("implicit", "als")))
    evaluation = at(found, "ranking", "evaluation", "seconds")
    default, *_ = batches = list((at(found, "recbole", "evaluation_seconds") or {"": None}).values())
    lists = at(found, "ranking", "recommend", "seconds"), at(found, "implicit", "recommend_seconds")
    memory = at(found, "memory", "peak_megabytes"), at(found, "recbole", "peak_megabytes")
    attention = (at(found, "rectools", name, "seconds") for name in ("towpath", "rectools"))
    ten, one = (at(found, "growth", size, "seconds") for size in ("ten", "one"))
    return [
        Line("epoch, one negative", one_negative, at(found, "recbole", "epoch_seconds"), "RecBole BPR", 0.1),
        Line(fair, *to_fair, "implicit BPR", 1),
        Line(good, *to_good, "implicit ALS", 3),
        Line("full-ranking evaluation", evaluation, default, "RecBole, default batch", 0.1),
        Line("full-ranking evaluation", evaluation, default and min(batches), "RecBole, its best batch", 1),
        Line("lists of ten for all users", *lists, "implicit", 1),
        Line("peak memory of training", *memory, "RecBole", 1 / 3, "MB"),
        Line("epoch of transport", transport, plain, "our plain epoch", 3),
        Line("epoch of ten times the events", ten, one, "our epoch of as many as here", 12),
        Line("epoch of attention, length 50", *attention, "RecTools SASRec", 1),
    ]


def at(found: Any, *keys: str) -> Any:
    """What lies under these keys, None where any of them is missing."""
    for key in keys:
        found = (found or {}).get(key)
    return found


def typical(curves: list[list[list[float]]] | None, quality: float) -> float | None:
    """The median over seeds of the seconds until the quality is reached; None if half of them never do."""
    times = sorted(inf if t is None else t for t in (until(curve, quality) for curve in curves or []))
    middle = times[len(times) // 2] if times else inf
    return None if middle == inf else middle


def until(curve: list[list[float]], quality: float) -> float | None:
    """Seconds until the quality is reached; None if it never is."""
    return next((seconds for seconds, hit in curve if hit >= quality), None)


def to_table(found: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """The table, with what it was measured on, and how good everybody became."""
    head = (
        "| what | towpath | other | who | ratio | wanted at most | reached |\n|---|---|---|---|---|---|---|"
    )
    best = {
        f"{name} {kind}": max(
            (hit for one in found for curve in at(one, name, kind) or [] for _, hit in curve), default=0
        )
        for name, kind in (("curves", "plain"), ("curves", "svd"), ("implicit", "bpr"), ("implicit", "als"))
    }
    return "\n".join(
        [
            f"# Other packages: {options.data}, {options.dim} dimensions, {options.threads} threads",
            "",
            f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end. Medians of "
            f"{len(found)} repetitions, with the lowest and the highest in brackets.",
            "",
            head,
            *(to_row(repeated) for repeated in zip(*map(lines, found), strict=True)),
            "",
            "Best test Hit@10 on the way: "
            + ", ".join(f"{name} {hit:.2%}" for name, hit in best.items())
            + ".",
            *(f"{peer} is missing or failed." for peer in PEERS if found[0][peer] is None),
            "",
        ]
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    models = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _shown(values: Sequence[float], unit: str) -> str:
    """The median of the values and, where there are several, their range."""
    if not values:
        return "–"
    spread = f" ({min(values):.3g} to {max(values):.3g})" if len(values) > 1 else ""
    return f"{median(values):.3g}{unit}{spread}"


if __name__ == "__main__":
    main()
