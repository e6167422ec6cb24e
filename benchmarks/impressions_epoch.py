"""What an epoch of transport on impressions costs next to a plain one, in turn on the same machine.

    python -m benchmarks.impressions_epoch [--size small|default] [--rounds 5]

Both with their defaults. Plain training goes through the clicks with many negatives each, transport through
the impressions, of which there are several times as many, with few. So next to the time of an epoch stands
that of a pair of user and item. Epochs of transport are those of both halves, ten each. Processor seconds,
the best of the rounds.
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
            found.append(timed(learner_of(train, method), epochs_of(method)))
    best = {method: min(found[1:]) for method, found in seconds.items()}
    milliseconds = {method: 1e3 * best[method] / epochs_of(method) for method in best}
    nanoseconds = {method: 1e6 * milliseconds[method] / pairs_of(train, method) for method in best}
    print(f"{'method':<12}{'ms an epoch':>12}{'pairs':>10}{'ns a pair':>12}")
    for method in best:
        pairs = pairs_of(train, method)
        print(f"{method:<12}{milliseconds[method]:>12.1f}{pairs:>10,.0f}{nanoseconds[method]:>12.0f}")
    epoch, pair = (found["transport"] / found["plain"] for found in (milliseconds, nanoseconds))
    print(f"transport takes {epoch:.2f} times plain for an epoch, {pair:.2f} times for a pair")


def epochs_of(method: str) -> int:
    return 2 * EPOCHS if method == "transport" else EPOCHS


def pairs_of(train: Interactions, method: str) -> float:
    """Pairs of user and item that an epoch learns from, on the mean over the epochs."""
    resolved = Recipe("mf", method).resolve()
    if method == "plain":
        return len(train) * (1 + resolved.training.negatives)
    settings = LibrarySettings()
    return len(train.rows) * (1 - settings.held_out / 2) * (1 + settings.library_negatives)


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
