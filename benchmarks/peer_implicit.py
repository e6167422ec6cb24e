"""What implicit takes: time to a quality, lists for everyone. Run by its own interpreter, knows no towpath.

    build/peers/implicit/bin/python benchmarks/peer_implicit.py FOLDER THREADS DIM

FOLDER holds the arrays that `benchmarks.peers` wrote. Answers with a line of JSON.
"""

import json
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as implicit itself recommends; it has threads of its own

import numpy as np
from implicit.als import AlternatingLeastSquares
from implicit.bpr import BayesianPersonalizedRanking
from scipy import sparse

# Iterations between two looks at the quality, and after how many to give up.
MODELS = {
    "bpr": (BayesianPersonalizedRanking, 5, 100),
    "als": (AlternatingLeastSquares, 1, 10),
}
SEEDS = 3


def main() -> None:
    folder, threads, dim = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    data = np.load(f"{folder}/events.npz")
    shape = tuple(data["shape"])
    taken, seen = (_matrix(data[f"{part}_users"], data[f"{part}_items"], shape) for part in ("train", "seen"))
    found = {}
    for name, (kind, every, most) in MODELS.items():
        models = (
            kind(factors=dim, iterations=most, random_state=seed, num_threads=threads)
            for seed in range(SEEDS)
        )
        found[name] = [curve(model, taken, seen, data, every) for model in models]
    model = kind(factors=dim, iterations=2, random_state=0, num_threads=threads)
    model.fit(taken, show_progress=False)
    found["recommend_seconds"] = min(_recommend(model, seen) for _ in range(5))
    print(json.dumps(found))


def _matrix(users: np.ndarray, items: np.ndarray, shape: tuple[int, ...]) -> sparse.csr_matrix:
    taken = sparse.csr_matrix((np.ones(len(users), np.float32), (users, items)), shape=shape)
    taken.data[:] = 1
    return taken


def curve(model, taken, seen, data, every: int) -> list[tuple[float, float]]:
    """Seconds of training so far and the test Hit@10 then, again and again."""
    spent, points = 0.0, []

    def look(iteration: int, seconds: float, *_: object) -> None:
        nonlocal spent
        spent += seconds
        if (iteration + 1) % every == 0:
            points.append((spent, hit(model, seen, data["test_users"], data["test_items"])))

    model.fit(taken, show_progress=False, callback=look)
    return points


def hit(model, seen, users: np.ndarray, targets: np.ndarray) -> float:
    """Share of users whose target is among the ten best unseen items; each user has one target."""
    scores = model.user_factors[users] @ model.item_factors.T
    rows, columns = seen[users].nonzero()
    scores[rows, columns] = -np.inf
    own = scores[np.arange(len(users)), targets][:, None]
    return float(((scores > own).sum(1) + ((scores == own).sum(1) - 1) / 2 < 10).mean())


def _recommend(model, seen) -> float:
    began = time.perf_counter()
    model.recommend(np.arange(seen.shape[0]), seen, N=10, filter_already_liked_items=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
