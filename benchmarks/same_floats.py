"""Whether one and two threads train the same model, for every model and method: one row each.

    python -m benchmarks.same_floats [--users 700] [--items 600] [--only attention ...] [--out FILE]

Every recipe is trained for one epoch on a simulated log that is large enough for kernels and torch to divide
their work. The difference is the largest of any parameter, and of any score of a hundred users.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from towpath.data.split import Split, split_leave_last_two
from towpath.methods.recipe import Recipe
from towpath.methods.registry import METHODS
from towpath.methods.run import fit
from towpath.models.registry import MODELS
from towpath.models.scorer import Scorer, context_of
from towpath.ranking.scoring import inference_mode
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

# What the floats of one recipe depend on, made small: epochs and the size of vectors.
SETTINGS = {"epochs": 1, "embedding_dim": 32}


@dataclass(frozen=True)
class Difference:
    """How far two fits of one recipe are apart."""

    model: str
    method: str
    parameters: float
    scores: float


def recipes() -> list[tuple[str, str]]:
    """Every model by plain training, and mf by every other method."""
    models = [(model, "plain") for model in MODELS if model != "headed"]  # a part of esmm, not a model alone
    return models + [(_model_of(method), method) for method in METHODS if method != "plain"]


def _model_of(method: str) -> str:
    return "headed" if method in ("esmm", "escm2") else "mf"


def difference(split: Split, model: str, method: str) -> Difference:
    """The largest differences between one and two threads."""
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        known = Recipe(model, method).resolved()["settings"]
        settings = {key: value for key, value in SETTINGS.items() if key in known}
        found.append(fit(split, Recipe(model, method, settings, 0)).scorer)
    torch.set_num_threads(1)
    states = [one.state_dict() for one in found]
    parameters = max(
        (float((states[0][key].double() - states[1][key].double()).abs().max()) for key in states[0]
         if states[0][key].numel()),
        default=0.0,
    )  # fmt: skip
    one, two = (_scores(scorer, split) for scorer in found)
    return Difference(model, method, parameters, float(np.abs(one - two).max()))


def _scores(scorer: Scorer, split: Split) -> np.ndarray:
    users = np.arange(min(100, split.train.n_users))
    with inference_mode(scorer):
        context = context_of(scorer, users, split.train.histories)
        return scorer.score(context, torch.arange(split.train.n_items)[None]).double().numpy()


def make_split(users: int, items: int) -> Split:
    """A log of impressions, which every method can use."""
    world = make_latent_world(LatentWorld(users=users, items=items, shown_per_user=60), Rng(0))
    return split_leave_last_two(world.log)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=700)
    parser.add_argument("--items", type=int, default=600)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="models or methods")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    split = make_split(options.users, options.items)
    rows = []
    for model, method in recipes():
        if options.only and not {model, method} & set(options.only):
            continue
        rows.append(vars(difference(split, model, method)))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    text = json.dumps(
        {"users": options.users, "items": options.items, "events": len(split.train), "rows": rows}
    )
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
