"""How often an experiment without any effect looks like one: 2,000 A/A runs of 28 looks each.

python -m benchmarks.aa_runs [--runs 2000] [--arms 2] [--out FILE.json]

For each metric the share of the runs in which the lift was ever significant at 5 %: by the confidence
sequence of the difference, by that of the ratio, by Holm over the arms, and by a fixed interval that is
looked at daily. A rule that is not named never was. `sample ratio` is the check of the split.
"""

import argparse
import json
import math
import time
from collections import Counter
from pathlib import Path

from towpath.abtest.lifts import Lift, lifts_at
from towpath.abtest.metrics import METRICS
from towpath.abtest.sequences import Sequence
from towpath.abtest.simulated import Visitors, simulate_experiment
from towpath.rng import Rng
from towpath.stats.sample_ratio import check_split

ALPHA = 0.05
SPLIT = "sample ratio"


def false_alarms(run: int, arms: int, visitors: Visitors) -> set[tuple[str, str]]:
    """What was ever significant in one run: (metric, how)."""
    sequence, found = Sequence(ALPHA), set()
    totals = simulate_experiment(visitors, [0.0] * arms, Rng(run))
    for look in totals.looks():
        for name, metric in METRICS.items():
            for lift in lifts_at(look, metric, "control", sequence):
                found |= {(name, how) for how in alarms_of(lift, sequence)}
        if check_split(look.arms, look.counts(), [1 / arms] * arms).mismatch:
            found.add((SPLIT, "e-value"))
    return found


def alarms_of(lift: Lift, sequence: Sequence) -> list[str]:
    """By which rules this lift is significant."""
    absolute, relative = lift.absolute, lift.relative
    half = (absolute.high - absolute.low) / 2 / sequence.multiplier(absolute.n)
    rules = {
        "difference": not absolute.covers(0),
        "ratio": not relative.covers(0),
        "holm": lift.p_holm < ALPHA,
        "fixed": math.isfinite(half) and half > 0 and abs(absolute.mean) > 1.96 * half,
    }
    return [how for how, alarmed in rules.items() if alarmed]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--arms", type=int, default=2)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    began, counts = time.perf_counter(), Counter[tuple[str, str]]()
    for run in range(asked.runs):
        counts.update(false_alarms(run, asked.arms, Visitors()))
    shares = {" ".join(key): count / asked.runs for key, count in sorted(counts.items())}
    result = {"runs": asked.runs, "arms": asked.arms, "seconds": time.perf_counter() - began, "ever": shares}
    print(json.dumps(result, indent=2))
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
