"""What towpath takes for the same: one kind of measurement per process, a line of JSON.

python -m benchmarks.peer_towpath KIND FOLDER THREADS DIM
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import torch

import towpath
from benchmarks.cost import learner_of, time_to_plain_best
from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import Vocabulary
from towpath.evaluation.evaluate import evaluate
from towpath.methods.recipe import Recipe
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

EPOCHS = 4
MOST_EPOCHS, FEW_EPOCHS = 10, 3
SEEDS, GAME_SEEDS = 3, 5
# The default is 20, which becomes better in the end and takes longer at first.
FEW_NEGATIVES = {"negatives": 3, "l2": 0.002}


def main() -> None:
    kind, folder, threads, dim = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(threads)
    print(json.dumps(KINDS[kind](folder, {"embedding_dim": dim})))


def read_split(folder: Path) -> Split:
    data = np.load(folder / "events.npz")
    users, items = (Vocabulary(pa.array(range(n))) for n in data["shape"])
    parts = (
        Interactions(data[f"{part}_users"], data[f"{part}_items"], users, items)
        for part in ("train", "validation", "test")
    )
    return Split(*parts, "benchmark")


def best(do: Callable[[], object], times: int = EPOCHS) -> dict[str, float]:
    """The least wall-clock and processor seconds of several."""
    wall, processor = [], []
    for _ in range(times):
        began, spent = time.perf_counter(), time.process_time()
        do()
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - spent)
    return {"seconds": min(wall), "processor_seconds": min(processor)}


# The networks that RecBole's NeuMF and WideDeep are by default, on ids alone, with its one negative.
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "neumf": ("ncf", {"embedding_dim": 64, "hidden": (128, 64), "negatives": 1}),
    "widedeep": (
        "wide_deep",
        {
            "embedding_dim": 10,
            "hidden": (32, 16, 8),
            "side_features": False,
            "page": False,
            "negatives": 1,
        },
    ),
}


def network(name: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """The second epoch and a full-ranking evaluation of such a network; the first epoch compiles."""
    split, (model, own) = read_split(folder), NETWORKS[name]
    learner = learner_of(Recipe(model, "plain", own), split)
    number = iter(range(1, 1000))
    learner.run_epoch(next(number))
    return {
        "epoch": best(lambda: learner.run_epoch(next(number)), 1),
        "evaluation": best(lambda: evaluate(learner.scorer, split), 1),
    }


def game(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Median processor seconds to plain's best validation Hit@10; infinite if most seeds never reach it."""
    split, plain = read_split(folder), Recipe("mf", "plain", settings)
    found = [time_to_plain_best(split, plain, seed) for seed in range(GAME_SEEDS)]
    return {
        method: median(one[method].get("seconds", inf) for one in found) for method in ("plain", "transport")
    }


def startup(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """A command that recommends to one user, from the shell, with a small mf."""
    from benchmarks.startup import asked

    path = folder / "run"
    if not path.exists():
        few = towpath.split(make_latent_world(LatentWorld(), Rng(0)).log)
        towpath.save(towpath.fit(few, "mf", epochs=2), few, path)
    wall, processor = zip(*(asked(path) for _ in range(9)), strict=True)
    return {"seconds": median(wall), "processor_seconds": median(processor)}


def epoch_of(split: Split, method: str, settings: dict[str, Any], times: int = EPOCHS) -> dict[str, float]:
    """An epoch, the first left out: it compiles."""
    learner = learner_of(Recipe("mf", method, settings), split)
    number = iter(range(1, 1000))
    learner.run_epoch(next(number))
    return best(lambda: learner.run_epoch(next(number)), times)


def epochs(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    split = read_split(folder)
    return {
        "plain": epoch_of(split, "plain", settings),
        "plain, one negative": epoch_of(split, "plain", settings | {"negatives": 1}),
        "transport": epoch_of(split, "transport", settings | {"warm_epochs": 0}),
    }


def memory(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """The peak of a process that trains as RecBole's does, and what it was when all was imported."""
    imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    epoch_of(read_split(folder), "plain", settings | {"negatives": 1})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"peak_megabytes": peak, "over_imports_megabytes": peak - imported}


def curves(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    split = read_split(folder)
    learner_of(Recipe("mf", "plain", settings), split).run_epoch(1)  # compiles
    begun = settings | {"start": "svd", "learning_rate": 0.0003}
    return {
        "plain": [curve(split, settings, MOST_EPOCHS, seed) for seed in range(SEEDS)],
        "few": [curve(split, settings | FEW_NEGATIVES, MOST_EPOCHS, seed) for seed in range(SEEDS)],
        "svd": [curve(split, begun, FEW_EPOCHS, seed) for seed in range(SEEDS)],
    }


def curve(split: Split, settings: dict[str, Any], most: int, seed: int) -> list[tuple[float, float]]:
    """Seconds of training so far, making the start included, and the test Hit@10 then."""
    began = time.perf_counter()
    learner = learner_of(Recipe("mf", "plain", settings, seed), split)
    spent = time.perf_counter() - began
    points = [(spent, _hit(learner.scorer, split))]
    for number in range(1, most + 1):
        began = time.perf_counter()
        learner.run_epoch(number)
        spent += time.perf_counter() - began
        points.append((spent, _hit(learner.scorer, split)))
    return points


def _hit(scorer: Any, split: Split) -> float:
    return float(evaluate(scorer, split).per_user["hit"].mean())


def ranking(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Full-ranking evaluation, and lists of ten for everyone, both without what was seen."""
    split = read_split(folder)
    scorer = learner_of(Recipe("mf", "plain", settings), split).scorer
    seen = split.before_test.histories

    def recommend() -> None:
        top_k_lists(scorer, np.arange(split.train.n_users), seen, 10)

    return {"evaluation": best(lambda: evaluate(scorer, split), 5), "recommend": best(recommend, 5)}


def growth(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """An epoch on made data of MovieLens 1M's size and of ten times as many events, as MovieLens 10M has."""
    one, ten = (made(size) for size in (1, 10))
    return {"one": epoch_of(one, "plain", settings, 2), "ten": epoch_of(ten, "plain", settings, 2)}


def made(times: int) -> Split:
    """Random events: so many times more of them and of users, with 10,700 instead of 3,700 items for ten."""
    rng = Rng(0).numpy("growth")
    users, items, events = 6_000 * times, round(3_700 * times**0.46), 1_000_000 * times
    who = np.sort((users * rng.random(events) ** 1.3).astype(np.int32))
    what = (items * rng.random(events) ** 2).astype(np.int32)
    train = Interactions(who, what, Vocabulary(pa.array(range(users))), Vocabulary(pa.array(range(items))))
    few = train.where(np.arange(events) < 10)  # nothing is evaluated on these
    return Split(train, few, few, "benchmark")


KINDS: dict[str, Callable[[Path, dict[str, Any]], dict[str, Any]]] = {
    "epochs": epochs,
    "memory": memory,
    "curves": curves,
    "ranking": ranking,
    "growth": growth,
    "neumf": partial(network, "neumf"),
    "widedeep": partial(network, "widedeep"),
    "game": game,
    "startup": startup,
}

if __name__ == "__main__":
    main()
