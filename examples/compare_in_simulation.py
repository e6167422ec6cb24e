"""Compare training methods in a simulated world, where the true chance of every click is known.

    python examples/compare_in_simulation.py

The log of such a world comes from an earlier recommender. The script shows the offline metric (Hit@10 on
held-out clicks) and the truth (expected clicks on a list of ten). One small world proves nothing about the
methods; the page docs/simulation.md has more worlds.
"""

import towpath
from towpath.evaluation.evaluate import evaluate
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

SETTINGS = {
    "embedding_dim": 16,
    "batch_size": 256,
    "learning_rate": 0.01,
    "l2": 0.02,
    "negatives": 3,
    "epochs": 15,
}


def main(seed: int = 0) -> None:
    """Train with each method on the same log, and print both numbers."""
    world = make_latent_world(LatentWorld(users=300, items=150, shown_per_user=40), Rng(seed))
    split = towpath.split(world.log)
    print(f"the log has shown {world.shown_share():.1%} of all pairs of a user and an item")
    print(f"{'method':<12}{'Hit@10':>10}{'true clicks':>14}")
    for method in ("plain", "ipw", "transport"):
        model = towpath.fit(split, "mf", method, seed=seed, **SETTINGS)
        metrics = evaluate(model.scorer, split, relevance=world.relevance).metrics()
        print(f"{method:<12}{metrics['hit']:>10.3f}{metrics['rel']:>14.2f}")
    best = world.best_relevance(10, split.train, split.validation).mean()
    print(f"best possible list: {best:.2f} true clicks")


if __name__ == "__main__":
    main()
