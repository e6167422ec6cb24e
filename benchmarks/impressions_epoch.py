"""What an epoch of transport on impressions costs next to a plain one, in turn on the same machine.

    python -m benchmarks.impressions_epoch [--size small|default] [--rounds 5]

Both with their defaults. An epoch of plain training goes through the clicks, each with its negatives (ten on
impressions); one of transport through the impressions, of which there are several times as many, for all
members, and with the draws of every batch. Epochs of transport are those of both halves, ten each, what it
takes to weigh the members and to deploy their sum included. Then both are fitted as `fit` does it, validation
included. Processor seconds, the best of the rounds.
"""

import argparse
import time
from collections.abc import Callable

import torch

from benchmarks.impressions import SIZES
from towpath.data.interactions import Interactions
from towpath.data.split import Split, split_leave_last_two
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_named
from towpath.methods.run import fit
from towpath.models.registry import model_type
from towpath.models.scorer import sizes_of
from towpath.rng import Rng
from towpath.training.learner import Learner
from towpath.training.task import TrainingTask
from towpath.worlds.latent import LatentWorld, make_latent_world

EPOCHS = 10


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    world = make_latent_world(LatentWorld(exploration=0.1, **SIZES[asked.size]), Rng(1))
    split = split_leave_last_two(world.log)
    seconds: dict[str, list[float]] = {"plain": [], "transport": []}
    fits: dict[str, list[float]] = {"plain": [], "transport": []}
    for _ in range(asked.rounds + 1):  # the first one compiles and does not count
        for method in seconds:
            seconds[method].append(timed(learner_of(split.train, method), epochs_of(method)))
            fits[method].append(timed_fit(split, method))
    epoch = {method: 1e3 * min(found[1:]) / epochs_of(method) for method, found in seconds.items()}
    whole = {method: min(found[1:]) for method, found in fits.items()}
    print(f"{'method':<12}{'ms an epoch':>12}{'s a fit':>10}")
    for method in epoch:
        print(f"{method:<12}{epoch[method]:>12.1f}{whole[method]:>10.2f}")
    ratios = (found["transport"] / found["plain"] for found in (epoch, whole))
    print("transport takes {:.2f} times plain for an epoch, {:.2f} times for a fit".format(*ratios))


def epochs_of(method: str) -> int:
    return 2 * EPOCHS if method == "transport" else EPOCHS


def learner_of(train: Interactions, method: str) -> Learner:
    """A learner that has not begun."""
    settings = {"library_epochs": EPOCHS} if method == "transport" else {}
    resolved = Recipe("mf", method, settings).suited_to(train).resolve()
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


def timed_fit(split: Split, method: str) -> float:
    """Processor seconds of a whole fit."""
    began = time.process_time()
    fit(split, Recipe("mf", method).suited_to(split.train))
    return time.process_time() - began


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="default")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
