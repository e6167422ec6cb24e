"""From your own event file to recommendations: read, clean, split, train, evaluate, recommend.

python examples/own_data.py                        writes a small event file first and uses that
python examples/own_data.py purchases.csv          needs users and items, better also times
"""

import csv
import sys
from pathlib import Path

import towpath
from towpath import Cleaning
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world


def write_example(path: Path) -> None:
    """A small event file of the form that a shop might have."""
    log = make_latent_world(LatentWorld(users=300, items=150, shown_per_user=40), Rng(0)).log
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "item", "time"])
        rows.writerows(zip(log.user_ids.ids(log.users), log.item_ids.ids(log.items), log.times, strict=True))


def main(path: str) -> None:
    """Train on this file and print what came of it."""
    reading = towpath.read(path, cleaning=Cleaning(min_per_user=3))
    for note in reading.notes:  # which columns were guessed
        print(note)
    split = towpath.split(reading)  # the last event of each user is the test, the one before it validates
    print(f"{len(split.train):,} training events, {len(split.test):,} test events")

    baseline = towpath.evaluate(towpath.fit(split, "popularity"), split).metrics()
    model = towpath.fit(split, "ease", ridge=100)
    metrics = towpath.evaluate(model, split).metrics()
    print(f"Hit@10 over the whole catalogue: ease {metrics['hit']:.3f}, popularity {baseline['hit']:.3f}")

    towpath.save(model, split, "own-data-model")
    recommender = towpath.load("own-data-model")
    user = reading.interactions.user_ids.ids(reading.interactions.users[:1])[0]
    print(f"for user {user}: {', '.join(map(str, recommender.recommend(user, k=5).items))}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        write_example(Path("events.csv"))
        main("events.csv")
