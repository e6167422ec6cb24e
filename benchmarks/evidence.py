"""How often the intervals of `towpath diagnose` hold the true clicks, in worlds whose truth is known.

python -m benchmarks.evidence [--worlds 100] [--first-seed 9000] [--out docs/results/evidence]

Every finished kind of world is kept in --out: the same command goes on where it stopped.

Two families of worlds. In worlds of kinds all users of a kind click alike, and the kinds are known: what is
tested is the chance in the observed clicks. In latent worlds tastes differ from user to user, cells are found
from training events as `diagnose` does, and a logging policy picks what it believes users like: similar users
do not click alike there. Worlds of even seeds are split by time, the others at random. Every kind of world is
drawn anew from each seed, and up to seven recommenders are looked at. Counted is in how many worlds an
interval holds the mean true chance of a click over all slots.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.data.split import split_at_random, split_by_time
from towpath.diagnostics.evidence import Evidence, Shown, find_evidence
from towpath.diagnostics.log_view import held_out_of, users_with_lists, view_log
from towpath.experiments.pool import workers
from towpath.files import write_text
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

K = 10
Values = NDArray[np.float64]
Held = dict[str, dict[str, bool]]  # recommender -> interval -> whether it held
Counts = dict[str, dict[str, int]]  # the same, in how many worlds

SMALL = {"users": 400, "items": 200, "shown_per_user": 40}
LATENT: Mapping[str, LatentWorld] = {
    "no exploration": LatentWorld(**SMALL, exploration=0.0),
    "a tenth at random": LatentWorld(**SMALL, exploration=0.1),
    "all at random": LatentWorld(**SMALL, exploration=1.0),
    "soft choice": LatentWorld(**SMALL, exploration=0.0, temperature=0.5),
    "poor logger": LatentWorld(**SMALL, exploration=0.1, logger_taste=0.1),
    "good logger": LatentWorld(**SMALL, exploration=0.1, logger_taste=0.95),
    "strong tastes": LatentWorld(**SMALL, exploration=0.1, taste=4.0),
    "rare clicks": LatentWorld(**SMALL, exploration=0.3, mean_relevance=0.02),
    "frequent clicks": LatentWorld(**SMALL, exploration=0.3, mean_relevance=0.5),
    "many shown of few items": LatentWorld(users=1500, items=60, shown_per_user=30, exploration=0.3),
    "much evidence, strong tastes": LatentWorld(
        users=3000, items=40, shown_per_user=30, exploration=0.3, taste=4.0, mean_relevance=0.2
    ),
}
# Where a factorisation is trained as well, which takes longer than everything else.
TRAINED = ("no exploration", "a tenth at random", "all at random")
MF = Recipe("mf", settings={"embedding_dim": 16, "epochs": 5, "batch_size": 512})


@dataclass(frozen=True)
class Kinds:
    """A world in which users of a kind have the same chances; what is shown leans towards what is liked."""

    users: int
    items: int
    kinds: int
    shown: int  # items a user, each once
    low: float
    high: float  # chances of a click lie between


OF_KINDS: Mapping[str, Kinds] = {
    "two kinds": Kinds(120, 30, 2, 12, 0.02, 0.6),
    "six kinds": Kinds(600, 60, 6, 20, 0.02, 0.6),
    "kinds, rare clicks": Kinds(300, 40, 3, 15, 0.0, 0.02),
    "kinds, frequent clicks": Kinds(300, 40, 3, 15, 0.5, 1.0),
    "kinds, most of it seen": Kinds(200, 20, 2, 18, 0.02, 0.6),
}


def held_in_world_of_kinds(name: str, seed: int) -> Held:
    """Which intervals hold, with the kinds as cells of similar users."""
    world, rng = OF_KINDS[name], Rng(seed).numpy("evidence", name)
    kind = np.arange(world.users) % world.kinds
    truth = rng.uniform(world.low, world.high, size=(world.kinds, world.items))[kind]
    liked = truth + rng.normal(0, 0.25 * (world.high - world.low), size=truth.shape)
    what = np.argsort(-liked, axis=1)[:, : world.shown].ravel()
    who = np.repeat(np.arange(world.users), world.shown)
    shown = Shown(who, what, rng.random(len(who)) < truth[who, what], world.items)
    counts = np.bincount(what, minlength=world.items)
    held = {}
    for recommender, scores in _scores(truth, counts, rng.random(truth.shape)).items():
        lists = np.argsort(-scores, axis=1, kind="stable")[:, :5]
        held[recommender] = _held(find_evidence(lists, np.arange(world.users), shown, kind), truth)
    return held


def held_in_latent_world(name: str, seed: int, *, trained: bool = False) -> Held:
    """Which intervals hold, with cells as `diagnose` makes them; `trained` adds a fitted factorisation."""
    world = make_latent_world(LATENT[name], Rng(seed).child("evidence", name))
    shares = {"validation_share": 0.25, "test_share": 0.25}
    by_time = seed % 2 == 0
    split = (
        split_by_time(world.log, **shares) if by_time else split_at_random(world.log, **shares, rng=Rng(seed))
    )
    rng = Rng(seed)
    view, users = view_log(split, held_out_of(split), rng), users_with_lists(split.train, rng)
    truth = world.relevance[users].astype(np.float64)
    scored = _scores(truth, split.train.item_counts, rng.numpy("evidence", "noise").random(truth.shape))
    scored["similarity"] = view.vectors.users[users] @ view.vectors.items.T
    had = _had(split.train, users)
    listed = {
        who: np.argsort(np.where(had, np.inf, -scores), axis=1, kind="stable")[:, :K]
        for who, scores in scored.items()
    }
    if trained:
        listed["trained mf"] = top_k_lists(fit(split, MF).scorer, users, split.train.histories, K).items
    return {who: _held(view.evidence(lists, users), truth) for who, lists in listed.items()}


def _scores(truth: Values, counts: NDArray[np.int64], noise: Values) -> dict[str, Values]:
    logits = np.log(truth.clip(1e-6, 1 - 1e-6) / (1 - truth.clip(1e-6, 1 - 1e-6)))
    return {
        "best": truth,
        "worst": -truth,
        "random": noise,
        "popular": np.tile(counts.astype(np.float64), (len(truth), 1)),
        "noisy": logits + 2 * noise,
    }


def _had(train: Interactions, users: NDArray[np.int64]) -> NDArray[np.bool_]:
    """What each of these users has in training: (users, items)."""
    had = np.zeros((train.n_users, train.n_items), dtype=np.bool_)
    had[train.users, train.items] = True
    return had[users]


def _held(found: Evidence, truth: Values) -> dict[str, bool]:
    """Whether both intervals hold the mean chance over slots; and, strictest, whether that of the slots with
    an answer of their own holds the chances of just these."""
    chances = np.take_along_axis(truth, found.lists, axis=1)
    clicks, known = found.expected_clicks(), float((found.levels == 1).mean())
    own = float(np.where(found.levels == 1, chances, 0).mean())
    (low, high), mean = clicks.sure, float(chances.mean())
    return {
        "sure": low <= mean <= high,
        "alike": clicks.alike[0] <= mean <= clicks.alike[1],
        # What is not known is priced at 1 in the upper end; without it the interval is about known slots.
        "own answers": low <= own <= high - (1 - known) + 1e-12,
    }


PAGE = """# Do the intervals of a diagnosis hold?

In how many of {worlds} worlds (seeds {first} to {last}) a 95 % interval of `towpath diagnose` held the true
mean chance of a click over all slots of a recommender's lists.

- **sure** is the `interval` of `expected_clicks`: only answers of the user count as known.
- **own answers** is the same interval without what is priced at 0 and 1. It is held against the true chances
  of the slots that have an answer of their own. This is the strictest of the three.
- **alike** (`interval_if_similar_users_click_alike`) also counts the click rate of similar users as known. It
  holds where the users of a cell click alike, as in the worlds of kinds, and not where they differ.

Fewest worlds in any row: sure {least[sure]}, own answers {least[own answers]}, alike {least[alike]}
(in worlds of kinds {of_kinds}). The intervals follow from an argument (a weighted sum of independent clicks,
whose weights do not depend on the clicks) and were not adjusted to these worlds.

    python -m benchmarks.evidence --worlds {worlds} --first-seed {first}

| world | recommender | sure | own answers | alike |
|:--|:--|--:|--:|--:|
{rows}
"""


def families() -> dict[str, Callable[[int], Held]]:
    """What looks at a world of each kind, given its seed."""
    of_kinds = {name: partial(held_in_world_of_kinds, name) for name in OF_KINDS}
    return of_kinds | {name: partial(held_in_latent_world, name, trained=name in TRAINED) for name in LATENT}


def count(look: Callable[[int], Held], seeds: range, jobs: int) -> Counts:
    """In how many worlds each interval of each recommender held."""
    with workers(_look, look, jobs) as results:
        found = list(results(seeds))
    return {who: {one: sum(held[who][one] for held in found) for one in found[0][who]} for who in found[0]}


def _look(look: Callable[[int], Held], seed: int) -> Held:
    torch.set_num_threads(1)
    return look(seed)


def page(found: Mapping[str, Counts], worlds: int, first_seed: int) -> str:
    """The counts as a page."""
    flat = [(world, who, held) for world, counts in found.items() for who, held in counts.items()]
    rows = [
        f"| {world} | {who} | {held['sure']} | {held['own answers']} | {held['alike']} |"
        for world, who, held in flat
    ]
    least = {which: min(held[which] for *_, held in flat) for which in ("sure", "own answers", "alike")}
    of_kinds = min(held["alike"] for world, _, held in flat if world in OF_KINDS)
    values = {"worlds": worlds, "first": first_seed, "last": first_seed + worlds - 1, "of_kinds": of_kinds}
    return PAGE.format(**values, least=least, rows="\n".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=9000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("docs/results/evidence"))
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.worlds)
    kept = options.out / f"counts-{seeds.start}-{seeds.stop - 1}.json"
    found: dict[str, Counts] = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    for name, look in families().items():
        if name not in found:
            found[name] = count(look, seeds, options.jobs)
            write_text(kept, json.dumps(found, indent=1) + "\n")
            print(name, flush=True)
    write_text(options.out / "results.md", page(found, options.worlds, options.first_seed))
    print(options.out / "results.md")


if __name__ == "__main__":
    main()
