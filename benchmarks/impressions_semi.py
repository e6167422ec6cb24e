"""Methods in worlds made from real ratings, with exposures logged: a table of docs/results/impressions.

    python -m benchmarks.impressions_semi --data ml-1m --data-dir DIR --worlds 500-502

What a user likes is a factorisation of the ratings, what was shown a random network of its vectors; clicks
come by chance. Numbers and files as in benchmarks.impressions.
"""

import argparse
from pathlib import Path

import torch

from benchmarks.impressions import Kept, fit_in_world, numbers, own_settings, write_table
from towpath.data.sources import read
from towpath.data.split import split_leave_last_two
from towpath.rng import Rng
from towpath.worlds.semi_synthetic import SemiSyntheticWorld, make_semi_synthetic_world


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    kept, settings = Kept(asked.kept), SemiSyntheticWorld(clicks="chance")
    cells = []
    for seed in numbers(asked.worlds):
        made = None
        for method in asked.methods:
            about = {"world": settings.model_dump(), "data": asked.data, "seed": seed, "model": "mf"}
            about |= {"method": method, "settings": own_settings(asked.set, "mf", method)}
            cell = kept.find(about)
            if cell is None:
                if made is None:
                    rated = read(asked.data, data_dir=asked.data_dir).interactions
                    world = make_semi_synthetic_world(rated, settings, Rng(seed))
                    made = world, split_leave_last_two(world.log)
                cell = kept.keep(about, fit_in_world(*made, about))
            cells.append({"label": method, "world": seed, **cell})
    write_table(asked.out / f"semi-{asked.data}", f"Worlds from {asked.data}, clicks by chance", cells, "rel")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default="ml-1m")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--worlds", default="500-502")
    parser.add_argument("--methods", nargs="+", default=["plain", "imitation", "shown", "ipw", "transport"])
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE or METHOD.KEY=VALUE")
    parser.add_argument("--kept", type=Path, default=Path("build/impressions"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/impressions"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
