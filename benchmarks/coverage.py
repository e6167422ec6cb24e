"""How often 95 % intervals of off-policy estimates hold the truth, on simulated logs of rare clicks.

python -m benchmarks.coverage [--repeats 200] [--rows 2000 10000] [--json]

A world has 34 items at 3 positions, clicks in about one of 200 rows, and a logging policy that is skewed
towards some of them; the target is uniform. Chances, clicks and the skew are fixed, logs are drawn anew.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from towpath.bandit.evaluate import Evaluating, evaluate_policy
from towpath.bandit.log import BanditLog
from towpath.bandit.policies import uniform_policy
from towpath.data.vocabulary import Vocabulary
from towpath.rng import Rng

ITEMS, POSITIONS = 34, 3
ESTIMATORS = ("ips", "snips", "dr", "sndr", "clipped", "switch-dr", "dros", "sub-gaussian")


@dataclass(frozen=True)
class Coverage:
    """How an interval fared over all repeats."""

    estimator: str
    interval: str
    rows: int
    coverage: float
    width: float  # mean


def world(skew: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logging chances and click chances, (positions, items) each; more skew is less overlap."""
    rng = Rng(0).numpy("coverage", "world")
    tastes = rng.normal(0, skew, size=(1, ITEMS)) + rng.normal(0, 0.2, size=(POSITIONS, ITEMS))
    logging = np.exp(tastes) / np.exp(tastes).sum(axis=1, keepdims=True)
    # Items that are shown more are clicked a little more, as a good logging policy would have it.
    click = 0.005 * np.exp(0.15 * tastes + rng.normal(0, 0.4, size=(POSITIONS, ITEMS)))
    return logging, click


def drawn_log(logging: NDArray[np.float64], click: NDArray[np.float64], n: int, seed: int) -> BanditLog:
    """One log of n rows."""
    rng = Rng(seed).numpy("coverage", "log", n)
    positions = rng.integers(POSITIONS, size=n)
    edges = logging.cumsum(axis=1)[positions]
    actions = np.minimum((rng.random(n)[:, None] > edges).sum(axis=1), ITEMS - 1)
    rewards = (rng.random(n) < click[positions, actions]).astype(np.float64)
    ids = Vocabulary(pa.array([str(i) for i in range(ITEMS)], pa.string()))
    return BanditLog(actions, positions, rewards, ids, ("1", "2", "3"), logging[positions, actions])


def measure(repeats: int, rows: int, skew: float = 1.4, known_bound: bool = True) -> Iterator[Coverage]:
    """Coverage and mean width of every interval of every estimator."""
    logging, click = world(skew)
    truth, target = float(click.mean()), uniform_policy(POSITIONS, ITEMS)
    how = Evaluating(max_weight=float(1 / ITEMS / logging.min()) if known_bound else None, cross_fit=3)
    found: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for seed in range(repeats):
        result = evaluate_policy(drawn_log(logging, click, rows, seed), target, how)
        for name in ESTIMATORS:
            for interval, estimate in result.estimates[name].items():
                found.setdefault((name, interval), []).append((estimate.covers(truth), estimate.width))
    for (name, interval), cases in found.items():
        covered, widths = (np.mean(column) for column in zip(*cases, strict=True))
        yield Coverage(name, interval, rows, float(covered), float(widths))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 10_000])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = [one for rows in options.rows for one in measure(options.repeats, rows)]
    if options.json:
        print(json.dumps([vars(one) for one in found]))
        return
    print("| rows | estimator | interval | coverage | mean width |\n|--:|:--|:--|--:|--:|")
    for one in found:
        print(f"| {one.rows:,} | {one.estimator} | {one.interval} | {one.coverage:.1%} | {one.width:.5f} |")


if __name__ == "__main__":
    main()
