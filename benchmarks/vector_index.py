"""Recall and time of `towpath export --index faiss` on a catalogue of 100,000 items.

    python -m benchmarks.vector_index [--items 100000] [--users 20000] [-k 10]

Two kinds of factors: drawn independently, the hardest case there is, and in clusters, as items of a shop are.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.batch_recommend import make_model
from towpath.models.factorization import Factorization
from towpath.rng import Rng
from towpath.serving.artifact import load_artifact
from towpath.serving.export import write_vectors

CLUSTERS = 500
SPREAD = 0.4  # of an item within its cluster, as a share of the spread of the clusters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("-k", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_model(options.users, options.items, Path(folder) / "model")
        artifact = load_artifact(Path(folder) / "model")
        assert isinstance(artifact.scorer, Factorization)
        for kind in ("independent", "clustered"):
            if kind == "clustered":
                generator = Rng(1).numpy("clusters")
                tables = (artifact.scorer.items.weight.data, artifact.scorer.users.weight.data)
                centres = generator.normal(0, 0.1, size=(CLUSTERS, tables[0].shape[1]))
                for table in tables:
                    table.numpy()[:] = _clustered(centres, len(table), generator)
            start = time.process_time()
            report = write_vectors(artifact, Path(folder) / kind, index=True, k=options.k)
            assert report is not None  # it was asked for
            found = {"factors": kind, "items": options.items, "k": options.k, "users_asked": report.users}
            found |= {"recall": round(report.recall, 4), "cpu_seconds": round(time.process_time() - start, 1)}
            print(json.dumps(found), flush=True)


def _clustered(
    centres: NDArray[np.float64], rows: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Vectors around centres that are drawn for each of them."""
    own = centres[generator.integers(len(centres), size=rows)]
    return own + generator.normal(0, SPREAD * centres.std(), size=own.shape)


if __name__ == "__main__":
    main()
