"""How long `towpath recommend RUN --user U` takes from the shell: wall-clock and processor seconds.

    python -m benchmarks.startup [--repeats 5]

A small world is fitted first. Wanted: under half a second for models that need no torch.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import towpath
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

MODELS = {"mf": {"epochs": 5}, "ease": {}, "ncf": {"epochs": 1}}
_RUN = "import sys; from towpath.cli import main; sys.exit(main())"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    split = towpath.split(make_latent_world(LatentWorld(), Rng(0)).log)
    print("| model | seconds | processor seconds |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for model, settings in MODELS.items():
            path = Path(folder) / model
            towpath.save(towpath.fit(split, model, **settings), split, path)
            wall, processor = zip(*(asked(path) for _ in range(repeats)), strict=True)
            print(f"| {model} | {median(wall):.2f} | {median(processor):.2f} |", flush=True)


def asked(folder: Path) -> tuple[float, float]:
    """Seconds and processor seconds of one command."""
    before, began = os.times(), time.perf_counter()
    command = [sys.executable, "-c", _RUN, "recommend", str(folder), "--user", "user-0042"]
    subprocess.run(command, check=True, capture_output=True)
    after, wall = os.times(), time.perf_counter() - began
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, spent


if __name__ == "__main__":
    main()
