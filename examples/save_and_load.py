"""Train once, save the model as plain files, load it elsewhere, and recommend to known and unknown users.

    python examples/save_and_load.py

The saved folder holds safetensors, JSON and Parquet files. It loads without the
training data and without pickle.
"""

from pathlib import Path

import towpath
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world


def train(folder: str) -> None:
    """What a nightly job does: fit and save."""
    split = towpath.split(make_latent_world(LatentWorld(users=300, items=150, shown_per_user=40), Rng(0)).log)
    model = towpath.fit(split, "mf", embedding_dim=16, epochs=10, seed=0)
    print(model.stopped_because)
    towpath.save(model, split, folder)


def serve(folder: str) -> None:
    """What a service does: load once, answer many times."""
    recommender = towpath.load(folder)
    for user in ("user-042", "somebody-new"):
        answer = recommender.recommend(user, k=3)
        source = "most popular items" if answer.fallback else "the model"
        print(f"{user}: {', '.join(map(str, answer.items))} (from {source})")
    print(f"similar to item-007: {', '.join(map(str, recommender.similar('item-007', k=3).items))}")


if __name__ == "__main__":
    train("saved-model")
    print("files:", ", ".join(sorted(path.name for path in Path("saved-model").iterdir())))
    serve("saved-model")
