"""What an epoch of transport on impressions costs next to a plain one, in turn on the same machine.

    python -m benchmarks.impressions_epoch [--size small|default] [--rounds 5]

Plain training goes through the clicks, transport through the impressions, of which there are several times
as many; both draw three items of the catalogue for each row. So seconds are given for an epoch and for 1,000
rows, and the ratio of the latter is what the heads cost. Epochs of the first half (without the
held-out impressions) and of the second (all of them) are both counted: the library's time is that of ten epochs of
each over the rows that they went through. Processor seconds, the best of the rounds.
"""

import argparse
import time
from collections.abc import Callable

import torch

from benchmarks.impressions import SIZES
from towpath.data.interactions import Interactions
from towpath.data.split import split_leave_last_two
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_named
from towpath.models.registry import model_type
from towpath.models.scorer import sizes_of
from towpath.rng import Rng
from towpath.training.learner import Learner
from towpath.training.task import TrainingTask
from towpath.transport.impressions.settings import LibrarySettings
from towpath.worlds.latent import LatentWorld, make_latent_world

EPOCHS = 10


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    world = make_latent_world(LatentWorld(exploration=0.1, **SIZES[asked.size]), Rng(1))
    train = split_leave_last_two(world.log).train
    seconds: dict[str, list[float]] = {"plain": [], "transport": []}
    for _ in range(asked.rounds + 1):  # the first one compiles and does not count
        for method, found in seconds.items():
            found.append(timed(learner_of(train, method), 2 * EPOCHS if method == "transport" else EPOCHS))
    shown = len(train.rows)
    rows = {"plain": EPOCHS * len(train), "transport": EPOCHS * (2 - LibrarySettings().held_out) * shown}
    best = {method: min(found[1:]) for method, found in seconds.items()}
    print(f"{'method':<12}{'ms an epoch':>12}{'ms for 1,000 rows':>20}")
    for method, took in best.items():
        epochs = 2 * EPOCHS if method == "transport" else EPOCHS
        print(f"{method:<12}{1e3 * took / epochs:>12.1f}{1e6 * took / rows[method]:>20.2f}")
    ratio = (best["transport"] / rows["transport"]) / (best["plain"] / rows["plain"])
    print(f"rows for rows, transport takes {ratio:.2f} times plain")


def learner_of(train: Interactions, method: str) -> Learner:
    """A learner that has not begun."""
    settings = {"library_epochs": EPOCHS} if method == "transport" else {}
    resolved = Recipe("mf", method, settings).resolve()
    scorer = model_type("mf")(resolved.model, sizes_of(train))
    scorer.initialise(train, Rng(0))
    make: Callable[..., Learner] = method_named(method).learner
    return make(TrainingTask(scorer, train, resolved.training, Rng(0)), resolved.method)


def timed(learner: Learner, epochs: int) -> float:
    """Processor seconds of so many epochs."""
    began = time.process_time()
    for number in range(1, epochs + 1):
        learner.epoch(number)
    return time.process_time() - began


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="default")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
