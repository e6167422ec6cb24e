"""Does an arm get better by learning from its own log? The tables of docs/results/served-loop.

    python -m benchmarks.served_loop --worlds 0 --size default --kept FOLDER
    python -m benchmarks.served_loop --worlds 720-721 --size small --kept FOLDER

Runs `towpath simulate serve` with its defaults (plain, ipw and transport, 21 days, trained again every night)
in each of these worlds, the seed of the loop being that of the world, and keeps its results, so that the same
command goes on where it stopped. Both tables have all worlds of this size that are kept.
"""

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.impressions import numbers
from towpath.cli import main as towpath

SIZES: dict[str, dict[str, int]] = {"default": {}, "small": {"users": 300, "items": 200}}
RESULTS = Path("docs/results/served-loop")
MODELS = ("world", "arm", "candidates", "week 1", "week 2", "week 3", "week 3 less week 1 (95 %)")
LISTS = ("world", "arm", "share, week 1", "week 2", "week 3", "lift of clicks: test, %", "truth, %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", default="0")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--kept", type=Path, required=True)
    asked = parser.parse_args()
    for seed in numbers(asked.worlds):
        run(seed, asked.size, asked.kept / f"{asked.size}-{seed}")
    folders = sorted(
        asked.kept.glob(f"{asked.size}-*/served"), key=lambda f: int(f.parent.name.split("-")[1])
    )
    told = {f.parent.name.split("-")[1]: json.loads((f / "results.json").read_text()) for f in folders}
    for name, heads, rows_of in (("models", MODELS, model_rows), ("lists", LISTS, list_rows)):
        rows = [[world, *row] for world, result in told.items() for row in rows_of(result)]
        RESULTS.mkdir(parents=True, exist_ok=True)
        with (RESULTS / f"{asked.size}-{name}.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([heads, *rows])


def run(seed: int, size: str, folder: Path) -> None:
    if (folder / "served").is_dir():
        return
    settings = [part for name, value in SIZES[size].items() for part in ("--set", f"{name}={value}")]
    create = ["simulate", "create", "--out", f"{folder}/world", "--seed", str(seed), *settings, "--quiet"]
    serve = [
        "simulate",
        "serve",
        f"{folder}/world",
        "--seed",
        str(seed),
        "--out",
        f"{folder}/served",
        "--quiet",
    ]
    wall, processor = time.perf_counter(), time.process_time()
    if towpath(create) or towpath(serve):
        raise SystemExit(f"world {seed} failed")
    spent = time.perf_counter() - wall, time.process_time() - processor
    print(f"world {seed}: {spent[0]:.0f} s, {spent[1]:.0f} s of processor time", flush=True)


def model_rows(result: dict[str, Any]) -> list[list[str]]:
    candidates = {"start": "before the first day", "end": "left after the last"}
    return [
        [arm, words, *(f"{value:.2f}" for value in models[key]), with_ends(models[f"{key}_gain"], 1)]
        for arm, models in result["models"].items()
        for key, words in candidates.items()
    ]


def list_rows(result: dict[str, Any]) -> list[list[str]]:
    lifts = {m["arm"]: m["relative"] for m in result["experiment"]["metrics"] if m["metric"] == "click_rate"}
    rows = []
    for arm, shares in result["weeks"].items():
        lift = with_ends(lifts[arm], 100) if arm in lifts else "–"
        truth = f"{100 * result['true_lifts'][arm]['click_rate']:+.1f}" if arm in lifts else "–"
        rows.append([arm, *(f"{share:.1%}" for share in shares), lift, truth])
    return rows


def with_ends(ends: list[float], times: float) -> str:
    value, low, high = (f"{times * end:+.{2 if times == 1 else 1}f}" for end in ends)
    return f"{value} ({low} to {high})"


if __name__ == "__main__":
    main()
