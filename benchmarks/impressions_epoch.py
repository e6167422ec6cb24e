"""What an epoch of transport on impressions costs next to a plain one, in turn on the same machine.

    python -m benchmarks.impressions_epoch [--size small|default] [--rounds 5]

Both with their defaults. An epoch of plain training goes through the clicks, each with its negatives (ten on
impressions); one of transport through the impressions, of which there are several times as many, for all
members, and with the draws of every batch. Epochs of transport are those of both halves, as many as `fit`
trains, what it takes to weigh the members and to deploy their sum included. Then both are fitted as `fit`
does it, validation included. Processor seconds of one thread, the median of the rounds with the lowest and
the highest ratio.
"""

import argparse
import os
import time
from collections.abc import Callable
from statistics import median

# Before numpy is loaded: threads of its linear algebra that wait for work would count as processor time.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

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

EPOCHS = 30  # of plain training, which validation would end


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    world = make_latent_world(LatentWorld(exploration=0.1, **SIZES[asked.size]), Rng(1))
    split = split_leave_last_two(world.log)
    seconds: dict[str, list[float]] = {"plain": [], "transport": []}
    fits: dict[str, list[float]] = {"plain": [], "transport": []}
    for _ in range(asked.rounds + 1):  # the first one compiles and does not count
        for method in seconds:
            seconds[method].append(timed(learner_of(split.train, method)))
            fits[method].append(timed_fit(split, method))
    print(f"{'method':<12}{'ms an epoch':>12}{'s a fit':>10}")
    for method in seconds:
        print(f"{method:<12}{1e3 * median(seconds[method][1:]):>12.1f}{median(fits[method][1:]):>10.2f}")
    print(f"transport takes {times(seconds)} times plain for an epoch, {times(fits)} for a fit")


def times(found: dict[str, list[float]]) -> str:
    """How many times plain's seconds transport takes: the median, the lowest and the highest round."""
    ratios = [own / plain for own, plain in zip(found["transport"][1:], found["plain"][1:], strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def learner_of(train: Interactions, method: str) -> Learner:
    """A learner that has not begun."""
    resolved = Recipe("mf", method).suited_to(train).resolve()
    scorer = model_type("mf")(resolved.model, sizes_of(train))
    scorer.initialise(train, Rng(0))
    make: Callable[..., Learner] = method_named(method).learner
    return make(TrainingTask(scorer, train, resolved.training, Rng(0)), resolved.method)


def timed(learner: Learner) -> float:
    """Processor seconds of an epoch."""
    epochs = learner.own_epochs or EPOCHS
    began = time.process_time()
    for number in range(1, epochs + 1):
        learner.run_epoch(number)
    return (time.process_time() - began) / epochs


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
