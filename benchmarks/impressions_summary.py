"""The summary of docs/results/impressions that other pages quote: when-it-pays.csv, from the tables there.

python -m benchmarks.impressions_summary
"""

import csv
from pathlib import Path

from benchmarks.impressions import write_rows

RESULTS = Path("docs/results/impressions")
SIZES = {"small": "700 x 400", "default": "1,500 x 800"}
EXPLORATION = {"0": "nothing", "0.1": "a tenth", "0.5": "half", "1": "all"}
METHODS = ("plain", "shown", "imitation", "transport")


def main() -> None:
    rows = [["world", "shown at random", *METHODS, "over plain %"]]
    for size, world in SIZES.items():
        for exploration, random in EXPLORATION.items():
            path = RESULTS / f"latent-{size}-exploration-{exploration}-taste-0.6.csv"
            if path.is_file():
                rows.append([world.replace(",", ""), random, *summary(path)])
    write_rows(RESULTS / "when-it-pays", "When it pays: true clicks on a list of ten", rows[0], rows[1:])


def summary(path: Path) -> list[str]:
    """True clicks of each method, and the gap of the last one to plain with its interval."""
    with path.open() as file:
        found = {row["method"]: row for row in csv.DictReader(file)}
    last = found[METHODS[-1]]
    gap = f"{last['over the first %']} ({last['low']} to {last['high']})"
    return [*(f"{float(found[method]['true clicks']):.2f}" for method in METHODS), gap]


if __name__ == "__main__":
    main()
