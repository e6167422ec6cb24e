"""Ten rounds of the closed loop on impressions: the tables of docs/results/impressions/loop.

    python -m benchmarks.impressions_loop --worlds 500-509 --rounds 10 --methods plain imitation ipw transport

Worlds of 700 x 400 whose first logger showed 40 items a user without exploration. Every round each arm is
trained on all that it has shown so far (and the first log), shows every user a list of ten, and logs clicks.
Rounds are kept in --kept, so that the same command goes on where it stopped.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from benchmarks.impressions import SIZES, interval, numbers, write_rows
from towpath.experiments.loop import Arm, LoopSettings, Start, run_loop
from towpath.experiments.pool import Work
from towpath.methods.recipe import Recipe
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    world_settings = LatentWorld(exploration=asked.exploration, **SIZES[asked.size])
    arms = [Arm(method, Recipe("mf", method)) for method in asked.methods]
    found: dict[str, list[list[float]]] = {method: [] for method in asked.methods}  # true clicks by round
    covered: dict[str, list[float]] = {method: [] for method in asked.methods}
    for seed in numbers(asked.worlds):
        start = Start(make_latent_world(world_settings, Rng(seed)), LoopSettings(rounds=asked.rounds), seed)
        rounds = run_loop(start, arms, Work(folder=asked.kept / f"loop-{seed}"))
        for method in asked.methods:
            mine = [one for one in rounds if one.arm == method]
            found[method].append([one.relevance for one in mine])
            covered[method].append(float(np.mean([one.coverage for one in mine])))
            print(seed, method, f"{sum(found[method][-1]):.3f}", flush=True)
    write(asked, found, covered)


def write(
    asked: argparse.Namespace, found: dict[str, list[list[float]]], covered: dict[str, list[float]]
) -> None:
    """Totals over the rounds, in pairs with the first arm, and every round's mean."""
    totals = {method: np.array(rounds).sum(axis=1) for method, rounds in found.items()}
    first = totals[asked.methods[0]]
    rows = []
    for method, total in totals.items():
        gaps = 100 * (total / first - 1)
        low, high = interval(gaps)
        by_round = np.array(found[method]).mean(axis=0)
        shares = (total.mean(), gaps.mean(), low, high, np.mean(covered[method]), by_round[0], by_round[-1])
        rows.append([method, str(len(total)), *(f"{value:.2f}" for value in shares)])
    heads = ("method", "worlds", "true clicks", "over the first, %", "low", "high", "coverage")
    heads += ("first round", "last round")
    title = f"{asked.rounds} rounds of the closed loop, exploration {asked.exploration:g}"
    write_rows(asked.out / f"loop-exploration-{asked.exploration:g}", title, heads, rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--worlds", default="500-509")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--exploration", type=float, default=0.0, help="of the first logger")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--methods", nargs="+", default=["plain", "imitation", "ipw", "transport"])
    parser.add_argument("--kept", type=Path, default=Path("build/impressions"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/impressions"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
