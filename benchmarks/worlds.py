"""What methods truly earn in worlds whose truth is known: the tables of docs/worlds.md and docs/results.md.

    python -m benchmarks.worlds latent                                      several kinds of latent world
    python -m benchmarks.worlds paper --data ml-1m --data-dir DIR           the paper's simulation columns
    python -m benchmarks.worlds overlap                                     from no overlap to full
    python -m benchmarks.worlds loop                                        ten rounds of the closed loop

All but the first take --seeds N --jobs 2 --out FOLDER; every finished cell is printed and, with --out, kept:
the same command goes on where it stopped. Tables have differences to their first method, paired by seed, with
95 % t-intervals.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from towpath.data.sources import read
from towpath.data.split import split_leave_last_two
from towpath.errors import TowpathError
from towpath.evaluation.evaluate import evaluate
from towpath.experiments.demo import demonstrate
from towpath.experiments.loop import Arm, LoopSettings, Start, run_loop
from towpath.experiments.pool import Work, workers
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import is_trainable
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world
from towpath.worlds.semi_synthetic import SemiSyntheticWorld, make_semi_synthetic_world
from towpath.worlds.store import load_world, save_world
from towpath.worlds.world import World

# One value of one method in one setting; a cell is fitted once and holds numbers only.
Cell = dict[str, Any]

WORLDS = {
    "the default: taste 0.6, random 0.1": LatentWorld(),
    "taste 0.6, random 0.5": LatentWorld(exploration=0.5),
    "taste 0.3, random 0.1": LatentWorld(logger_taste=0.3),
    "taste 0.3, random 0": LatentWorld(logger_taste=0.3, exploration=0.0),
}
# Chosen by validation Hit@10 in the worlds of seeds 100 and 101, some ten tries each.
MF_SETTINGS = {"embedding_dim": 16, "batch_size": 1024, "learning_rate": 0.01, "l2": 0.02, "negatives": 3}
IPW_SETTINGS = {**MF_SETTINGS, "variant": "weighted", "propensity": "given", "floor": 0.5}
# The game on clicks; benchmarks.impressions is about what was shown.
GAME = {"solver": "game", "warm_epochs": 1}
TRANSPORT_SETTINGS = {**MF_SETTINGS, "hard_negative_depth": 200, **GAME}
# The paper's columns, the plain model first since differences are to it.
PAPER: dict[str, Recipe] = {
    "MCF": Recipe("mf"),
    "Pop": Recipe("popularity"),
    "IPW-MF": Recipe("mf", "ipw"),
    "ExpoMF": Recipe("mf", "expomf"),
    "AC-MF": Recipe("mf", "adversarial"),
    "DT-MCF": Recipe("mf", "transport", GAME),
    "NCF": Recipe("ncf"),
    "DT-NCF": Recipe("ncf", "transport", GAME),
    "IPW-MF, true propensities": Recipe("mf", "ipw", {"propensity": "given"}),
}
THREE = {
    "plain": Recipe("mf", settings=MF_SETTINGS),
    "ipw": Recipe("mf", "ipw", settings=IPW_SETTINGS),
    "ipw by popularity": Recipe("mf", "ipw", settings=MF_SETTINGS | {"floor": 0.5}),
    "transport": Recipe("mf", "transport", settings=TRANSPORT_SETTINGS),
}
RANDOM = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)


def main() -> None:
    asked = _arguments()
    torch.set_num_threads(1)
    {"latent": _latent, "paper": _paper, "overlap": _overlap, "loop": _loop}[asked.what](asked)


def _latent(asked: argparse.Namespace) -> None:
    """Recommenders by worlds, true clicks on a list of ten, one number for each seed."""
    names: list[str] = []
    for title, settings in WORLDS.items():
        shown = [demonstrate(settings, seed) for seed in range(asked.seeds)]
        trials = [{trial.name: trial.mean("rel") for trial in one.results} for one in shown]
        if not names:
            names = list(trials[0])
            print("| world | " + " | ".join(names) + " | best possible |\n" + "|---" * (len(names) + 2) + "|")
        cells = [" / ".join(f"{values[n]:.2f}" for values in trials) for n in names]
        best = " / ".join(f"{one.oracle()['best possible']:.2f}" for one in shown)
        print(f"| {title} | " + " | ".join([*cells, best]) + " |", flush=True)


def _paper(asked: argparse.Namespace) -> None:
    """One world for each click rule (seed --world-seed), every column with every seed."""
    folder = asked.out or Path("build/worlds")
    for clicks in asked.clicks.split(","):
        place = _made(asked, clicks, folder)
        wanted = _chosen(PAPER, asked)
        pieces = [
            (clicks, name, recipe, seed) for seed in range(asked.seeds) for name, recipe in wanted.items()
        ]
        cells = _finish(_fit_in_world, place, pieces, asked)
        for metric in (
            "paper hit",
            "paper ndcg",
            "sampled hit",
            "sampled ndcg",
            "full hit",
            "rel",
            "weighted hit",
        ):
            _table(f"{clicks}: {metric}", cells, metric, list(wanted))


def _made(asked: argparse.Namespace, clicks: str, folder: Path) -> Path:
    """The folder of the world, made unless it is there."""
    name = f"{asked.data}-{clicks}-{asked.world_seed}" + "".join(f"-{pair}" for pair in asked.set)
    place = folder / name.replace("/", "_")
    if not place.exists():
        rated = read(asked.data, data_dir=asked.data_dir).interactions
        values = dict(pair.split("=", 1) for pair in asked.set)
        settings = SemiSyntheticWorld.model_validate({"clicks": clicks, **values})
        world = make_semi_synthetic_world(rated, settings, Rng(asked.world_seed))
        save_world(world, place, {"data": asked.data, "settings": settings.model_dump()})
    return place


_worlds: dict[Path, World] = {}  # of this process: a world is read once, however many fits it sees


def _fit_in_world(place: Path, piece: tuple[str, str, Recipe, int]) -> Cell:
    clicks, name, recipe, seed = piece
    if place not in _worlds:
        _worlds[place] = load_world(place)[0]
    world = _worlds[place]
    split = split_leave_last_two(world.log)
    fitted = fit(split, replace(recipe, seed=seed))
    full = evaluate(fitted.scorer, split, relevance=world.relevance)
    numbers = {"full hit": full.metrics()["hit"], "rel": full.metrics()["rel"]}
    numbers["weighted hit"] = float(world.relevance_weighted_hit(full, split.test).mean())
    for protocol in ("sampled", "paper"):
        evaluated = evaluate(fitted.scorer, split, protocol=protocol).metrics()  # type: ignore[arg-type]
        numbers |= {f"{protocol} {metric}": evaluated[metric] for metric in ("hit", "ndcg")}
    seconds = sum(row["seconds"] + row["validation_seconds"] for row in fitted.history)
    return {"name": name, "seed": seed, "where": clicks, "seconds": round(seconds, 1), **numbers}


def _overlap(asked: argparse.Namespace) -> None:
    """True clicks on a list as the share of random showings goes from none to all; each seed is a world."""
    wanted = _chosen(THREE, asked)
    pieces = [
        (random, name, recipe, seed)
        for random in RANDOM
        for seed in range(asked.seeds)
        for name, recipe in wanted.items()
    ]
    cells = _finish(_fit_at_overlap, None, pieces, asked)
    for random in RANDOM:
        here = [cell for cell in cells if cell["where"] == random]
        _table(f"random {random:g}: true clicks on a list of ten", here, "rel", list(wanted))


def _fit_at_overlap(_: None, piece: tuple[float, str, Recipe, int]) -> Cell:
    random, name, recipe, seed = piece
    world = make_latent_world(LatentWorld(exploration=random), Rng(seed))
    split = split_leave_last_two(world.log)
    fitted = fit(split, replace(recipe, seed=seed))
    evaluated = evaluate(fitted.scorer, split, relevance=world.relevance).metrics()
    best = float(world.best_relevance(10, split.train, split.validation)[np.unique(split.test.users)].mean())
    return {
        "name": name,
        "seed": seed,
        "where": random,
        "rel": evaluated["rel"],
        "hit": evaluated["hit"],
        "best": best,
    }


def _loop(asked: argparse.Namespace) -> None:
    """Rounds of the closed loop, averaged over worlds, and clicks over all rounds in pairs."""
    wanted = _chosen(THREE, asked)
    pieces = [
        (asked.rounds, name, recipe, seed) for seed in range(asked.seeds) for name, recipe in wanted.items()
    ]
    pieces += [(asked.rounds, "random", None, seed) for seed in range(asked.seeds)]
    cells = _finish(_play, None, pieces, asked)
    for name in [*wanted, "random"]:
        rounds = [cell["rounds"] for cell in cells if cell["name"] == name]
        print(f"\n{name}, mean of {len(rounds)} worlds")
        columns = ("relevance", "best", "click_through", "coverage", "popularity", "promised_hit", "true_hit")
        print("| round | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
        for number in range(asked.rounds):
            means = [np.mean([one[number][column] for one in rounds]) for column in columns]
            print(f"| {number + 1} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
    _table(f"true clicks per user in {asked.rounds} rounds", cells, "clicks", [*wanted, "random"])


def _play(_: None, piece: tuple[int, str, Recipe | None, int]) -> Cell:
    rounds, name, recipe, seed = piece
    world = make_latent_world(LatentWorld(), Rng(seed))
    played = run_loop(Start(world, LoopSettings(rounds=rounds), seed), [Arm(name, recipe)], Work())
    clicks = sum(one.relevance for one in played)
    return {
        "name": name,
        "seed": seed,
        "where": rounds,
        "clicks": clicks,
        "rounds": [vars(o) for o in played],
    }


def _finish(
    do: Callable[[Any, Any], Cell], shared: Any, pieces: Sequence[Any], asked: argparse.Namespace
) -> list[Cell]:
    """The cell of every piece: from the folder where it was kept, else made; each is printed as it comes."""
    cells, missing = [], []
    for piece in pieces:
        path = _path(asked, shared, piece)
        if path is not None and path.is_file():
            cells.append(json.loads(path.read_text()))
        else:
            missing.append((do, piece))
    with workers(_one, shared, asked.jobs) as results:
        for (_, piece), cell in results(missing) if missing else ():
            print(json.dumps({k: v for k, v in cell.items() if k != "rounds"}), flush=True)
            if "failed" in cell:
                continue
            path = _path(asked, shared, piece)
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(cell))
            cells.append(cell)
    return cells


def _one(shared: Any, task: tuple[Callable[[Any, Any], Cell], Any]) -> tuple[Any, Cell]:
    do, piece = task
    try:
        return task, do(shared, piece)
    except TowpathError as error:  # one method that cannot is no reason to lose the others
        return task, {"name": piece[1], "seed": piece[3], "failed": str(error)}


def _path(asked: argparse.Namespace, shared: Any, piece: Any) -> Path | None:
    if asked.out is None:
        return None
    where, name, recipe, seed = piece
    about = [asked.what, str(shared), where, name, None if recipe is None else recipe.resolved(), seed]
    return asked.out / "cells" / f"{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:24]}.json"


def _chosen(recipes: Mapping[str, Recipe], asked: argparse.Namespace) -> dict[str, Recipe]:
    """The recipes that were asked for; one whose model or method is not there is said and left out."""
    chosen = {}
    extra = dict(pair.split("=", 1) for pair in asked.fit)
    for name in asked.only.split(";") if asked.only else recipes:
        recipe = recipes[name]
        if is_trainable(recipe.model):
            recipe = replace(recipe, settings={**recipe.settings, **extra})
        try:
            recipe.resolve()
            chosen[name] = recipe
        except TowpathError as error:
            print(f"{name} is left out: {error}", flush=True)
    return chosen


def _table(title: str, cells: Sequence[Cell], metric: str, names: Sequence[str]) -> None:
    """Mean and standard deviation over seeds, and the paired difference to the first name."""
    values = {(cell["name"], cell["seed"]): cell[metric] for cell in cells}
    best = [cell["best"] for cell in cells if "best" in cell]
    print(f"\n{title}" + (f" (best possible {np.mean(best):.3f})" if best else ""))
    print("| method | mean ± sd | difference to the first |\n|---|---|---|")
    for name in names:
        seeds = sorted(seed for one, seed in values if one == name)
        if not seeds:
            continue
        own = np.array([values[name, seed] for seed in seeds])
        gaps = np.array([values[name, s] - values[names[0], s] for s in seeds if (names[0], s) in values])
        spread = own.std(ddof=1) if len(own) > 1 else 0.0
        print(f"| {name} | {own.mean():.4f} ± {spread:.4f} | {_interval(gaps)} |")


def _interval(gaps: np.ndarray) -> str:
    if len(gaps) < 2 or not gaps.any():
        return ""
    half = stats.t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / len(gaps) ** 0.5
    return f"{gaps.mean():+.4f} ({gaps.mean() - half:+.4f} to {gaps.mean() + half:+.4f})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["latent", "paper", "overlap", "loop"], nargs="?", default="latent")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument(
        "--only", help="methods, separated by ';'; the first is what the others are paired with"
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--data", default="ml-1m")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--clicks", default="cut-off,chance")
    parser.add_argument("--world-seed", type=int, default=0)
    parser.add_argument("--fit", action="append", default=[], help="KEY=VALUE of every trained model's fit")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of the semi-synthetic world")
    return parser.parse_args()


if __name__ == "__main__":
    main()
