"""Peak memory and time of `towpath recommend --all --out`: 1 million users x 100,000 items, random factors.

python -m benchmarks.batch_recommend [--users 1000000] [--items 100000] [-k 10] [--most-gigabytes 2]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from towpath.data.interactions import Histories
from towpath.data.vocabulary import Vocabulary
from towpath.models.registry import build
from towpath.models.scorer import Sizes
from towpath.rng import Rng
from towpath.serving.artifact import Artifact, ServingHistory, save_artifact

PER_USER = 12
COMMAND = "from towpath.cli import main; raise SystemExit(main())"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--most-gigabytes", type=float, default=2.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, lists = Path(folder) / "model", Path(folder) / "lists.parquet"
        make_model(options.users, options.items, model)
        start = time.perf_counter()
        verb = ["recommend", str(model), "--all", "-k", str(options.k), "--out", str(lists), "--json"]
        subprocess.run([sys.executable, "-c", COMMAND, *verb], check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = {
            "users": options.users,
            "items": options.items,
            "seconds": round(time.perf_counter() - start, 1),
            "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
            "peak_gigabytes": round(used.ru_maxrss * 1024 / 1e9, 2),
            "rows": pq.read_metadata(lists).num_rows,
            "file_megabytes": round(lists.stat().st_size / 1e6, 1),
        }
    print(json.dumps(found, indent=2))
    if found["peak_gigabytes"] > options.most_gigabytes:
        sys.exit(f"over {options.most_gigabytes:g} GB")


def make_model(users: int, items: int, folder: Path) -> None:
    """An artifact of mf with 32 random factors, whose users have had a run of items each."""
    rng = Rng(0).numpy("batch")
    scorer = build("mf", {}, Sizes(users, items))
    for table in (scorer.users.weight, scorer.items.weight):
        table.data.numpy()[:] = rng.normal(0, 0.1, size=tuple(table.shape))
    had = (rng.integers(items, size=users)[:, None] + np.arange(PER_USER)) % items
    histories = Histories(np.arange(users + 1) * PER_USER, had.ravel().astype(np.int32))
    counts = np.bincount(histories.items, minlength=items)
    history = ServingHistory(histories, np.ones(users, dtype=np.bool_), counts)
    ids = Vocabulary(pa.array(range(users))), Vocabulary(pa.array(range(items)))
    save_artifact(Artifact(scorer, *ids, history, {}), folder)


if __name__ == "__main__":
    main()
