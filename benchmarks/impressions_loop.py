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
from towpath.experiments.rounds import Round
from towpath.methods.recipe import Recipe
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    world_settings = LatentWorld(exploration=asked.exploration, **SIZES[asked.size])
    arms = [Arm(method, Recipe("mf", method)) for method in asked.methods]
    found: dict[str, list[list[Round]]] = {method: [] for method in asked.methods}  # by world
    for seed in numbers(asked.worlds):
        start = Start(make_latent_world(world_settings, Rng(seed)), LoopSettings(rounds=asked.rounds), seed)
        rounds = run_loop(start, arms, Work(folder=asked.kept / f"loop-{seed}"))
        for method in asked.methods:
            mine = [one for one in rounds if one.arm == method]
            found[method].append(mine)
            print(seed, method, f"{sum(one.relevance for one in mine):.3f}", flush=True)
    write(asked, found)


def write(asked: argparse.Namespace, found: dict[str, list[list[Round]]]) -> None:
    """Totals of all rounds, paired with the first arm and the last; both ends, alone and of what was left.

    What was clicked is not shown again, so an arm that has earned more has less left to earn: `best` is what
    the best list of ten would still have earned in that arm's own round.
    """
    by_round = {m: np.array([[one.relevance for one in mine] for mine in w]) for m, w in found.items()}
    best = {m: np.array([[one.best for one in mine] for mine in w]) for m, w in found.items()}
    covered = {m: np.mean([[one.coverage for one in mine] for mine in w]) for m, w in found.items()}
    first, last = (by_round[asked.methods[n]].sum(axis=1) for n in (0, -1))
    totals, ends = [], []
    for method, clicks in by_round.items():
        total = clicks.sum(axis=1)
        gaps, lead = 100 * (total / first - 1), 100 * (last / total - 1)
        share = clicks / best[method]
        percent = (gaps.mean(), *interval(gaps), lead.mean(), *interval(lead))
        row = [method, str(len(clicks)), f"{total.mean():.2f}", *(f"{value:+.1f}" for value in percent)]
        totals.append([*row, f"{covered[method]:.2f}"])
        found_at = [(clicks[:, n].mean(), best[method][:, n].mean(), share[:, n].mean()) for n in (0, -1)]
        ends.append([method, *(f"{value:.2f}" for at in found_at for value in at)])
    name, title = f"loop-exploration-{asked.exploration:g}", f"{asked.rounds} rounds of the closed loop"
    heads = ("method", "worlds", "true clicks", "over the first, %", "low", "high")
    heads += (f"{asked.methods[-1]} over it, %", "from", "to", "coverage")
    write_rows(asked.out / name, f"{title}, exploration {asked.exploration:g}", heads, totals)
    heads = ("method", "first round", "best", "share", "last round", "best then", "share then")
    write_rows(asked.out / f"{name}-ends", f"{title}: its first and its last", heads, ends)


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
