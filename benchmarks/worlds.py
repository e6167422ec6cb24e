"""True clicks on a list of ten in worlds of several kinds: the table of docs/worlds.md.

python -m benchmarks.worlds [--seeds 2]
"""

import argparse

import torch

from towpath.experiments.demo import demonstrate
from towpath.worlds.latent import LatentWorld

WORLDS = {
    "the default: taste 0.6, blind 0.1": LatentWorld(),
    "taste 0.6, blind 0.5": LatentWorld(exploration=0.5),
    "taste 0.3, blind 0.1": LatentWorld(logger_taste=0.3),
    "taste 0.3, blind 0": LatentWorld(logger_taste=0.3, exploration=0.0),
}
NAMES = ("popularity", "ease", "mf", "transport")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| world | " + " | ".join(NAMES) + " | best possible |\n" + "|---" * (len(NAMES) + 2) + "|")
    for name, settings in WORLDS.items():
        shown = [demonstrate(settings, seed) for seed in range(options.seeds)]
        trials = [{trial.name: trial.mean("rel") for trial in one.trials} for one in shown]
        cells = [" / ".join(f"{values[n]:.2f}" for values in trials) for n in NAMES]
        best = " / ".join(f"{one.oracle()['best possible']:.2f}" for one in shown)
        print(f"| {name} | " + " | ".join([*cells, best]) + " |", flush=True)


if __name__ == "__main__":
    main()
