"""The vectors of implicit's ALS with its own defaults. Run by its own interpreter, knows no towpath.

    build/peers/implicit/bin/python benchmarks/peer_als.py FOLDER DIM SEEDS

FOLDER holds the arrays that `benchmarks.peers` wrote; `factors.npz` is written next to them.
"""

import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as implicit itself recommends; it has threads of its own

import numpy as np
from implicit.als import AlternatingLeastSquares
from scipy import sparse


def main() -> None:
    folder, dim, seeds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    data = np.load(f"{folder}/events.npz")
    users, items = data["train_users"], data["train_items"]
    taken = sparse.csr_matrix((np.ones(len(users), np.float32), (users, items)), shape=tuple(data["shape"]))
    taken.data[:] = 1
    found = {}
    for seed in range(seeds):
        model = AlternatingLeastSquares(factors=dim, random_state=seed, num_threads=1)
        model.fit(taken, show_progress=False)
        found |= {f"users_{seed}": model.user_factors, f"items_{seed}": model.item_factors}
    np.savez(f"{folder}/factors.npz", **found)


if __name__ == "__main__":
    main()
