"""What methods truly earn on logs of impressions: the tables of docs/results/impressions.

    python -m benchmarks.impressions --worlds 500-509 --exploration 0 .1 .5 1       latent worlds, 700 x 400
    python -m benchmarks.impressions --worlds 500-509 --exploration 0 .5 --taste .2 .9
    python -m benchmarks.impressions --worlds 500-509 --size default                     1,500 x 800, 60 shown
    python -m benchmarks.impressions --worlds 500-501 --exploration 0 .5 --suffix=-towers \
        --models mf ncf attention wide_deep --methods plain transport
    python -m benchmarks.impressions --worlds 500-504 --exploration 0 .5 --suffix=-game \
        --methods plain shown game game-on-clicks transport

    python -m benchmarks.impressions --worlds 500-509 --exploration .1 .5 --random-named --suffix=-random \
        --methods unnamed likeness transport

With --random-named the log says which rows were shown at random: `unnamed` is transport that does not look at
it, `likeness` learns likeness from the other rows alone, `transport` also weighs by the random ones.
`game` is the paper's game on impressions: f, w and g as models, the risk on shown pairs, a Wasserstein price.
`game-on-clicks` is the same on clicks with sampled negatives.

Every world is split and every method fitted with default settings, --seeds times; --set KEY=VALUE or
METHOD.KEY=VALUE changes that. A finished fit is kept in --kept, named after world, seeds and settings, not
the code (empty it when the code has changed), so that the same command goes on where it stopped. The tables
are written to --out as CSV and Markdown: true clicks on a list of ten, and the difference to the first
method in percent, paired by world, with 95 % t-intervals; and how far the last method is ahead of each
other one.
"""

import argparse
import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from towpath.data.split import Split, split_leave_last_two
from towpath.errors import TowpathError
from towpath.evaluation.evaluate import evaluate
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world
from towpath.worlds.world import World

METHODS = ("plain", "shown", "imitation", "ipw", "expomf", "esmm", "escm2", "conservative", "transport")
SIZES: dict[str, dict[str, int]] = {
    "small": {"users": 700, "items": 400, "shown_per_user": 40},
    "default": {},
}
# Plain with the penalty that validation chooses among a few, since its default suits larger data.
TUNED = tuple(
    {"l2": l2, "learning_rate": rate, "negatives": 3}
    for l2 in (0.002, 0.01, 0.02, 0.03)
    for rate in (0.003, 0.01)
)

# Names of rows that are a method with settings.
GAME = {"solver": "game", "players": "models", "w": "mf", "g": "mf", "warm_epochs": 1}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "unnamed": ("transport", {"likeness_rows": "all", "stack_rows": "all"}),
    "likeness": ("transport", {"stack_rows": "all"}),
    "game": ("transport", {**GAME, "pairs": "shown", "hard_negatives": 0}),
    "game-on-clicks": ("transport", GAME),
}

Cell = dict[str, Any]  # the numbers of one fit; any JSON


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    kept, leads = Kept(asked.kept), []
    for exploration in asked.exploration:
        for taste in asked.taste:
            settings = LatentWorld(
                exploration=exploration,
                logger_taste=taste,
                random_named=asked.random_named,
                **SIZES[asked.size],
            )
            cells = list(world_cells(settings, asked, kept))
            if not cells:  # only with --stored
                continue
            name = f"latent-{asked.size}-exploration-{exploration:g}-taste-{taste:g}{asked.suffix}"
            title = (
                f"Latent worlds {settings.users:,} x {settings.items:,}, {settings.shown_per_user} shown, "
                f"exploration {exploration:g}, logger_taste {taste:g}"
            )
            write_table(asked.out / name, title, cells, "rel")
            kind = [f"{exploration:g}", f"{taste:g}"]
            leads += [[*kind, *row] for row in leads_of(cells, asked.methods)]
    if leads:
        title = f"How far {asked.methods[-1]} is ahead, paired by world"
        heads = ("exploration", "taste", "over", "worlds", "%", "low", "high", "worst world")
        write_rows(asked.out / f"lead-{asked.size}{asked.suffix}", title, heads, leads)


def leads_of(cells: Sequence[Cell], methods: Sequence[str]) -> Iterable[list[str]]:
    """How far the last method is ahead of each of the others, in percent: a row each."""
    found = values_of(cells, "rel")
    last = found.get(methods[-1], {})
    for rival in methods[:-1]:
        own = found.get(rival, {})
        gaps = np.array([100 * (last[world] / own[world] - 1) for world in last if world in own])
        if len(gaps) > 1:
            numbers = (gaps.mean(), *interval(gaps), gaps.min())
            yield [rival, str(len(gaps)), *(f"{number:+.1f}" for number in numbers)]


def values_of(cells: Sequence[Cell], metric: str) -> dict[str, dict[int, float]]:
    """The metric by label and world, the mean of a world's fits."""
    found: dict[str, dict[int, list[float]]] = {}
    for cell in cells:
        if metric in cell:
            found.setdefault(cell["label"], {}).setdefault(cell["world"], []).append(cell[metric])
    return {
        label: {world: float(np.mean(fits)) for world, fits in worlds.items()}
        for label, worlds in found.items()
    }


def world_cells(settings: LatentWorld, asked: argparse.Namespace, kept: "Kept") -> Iterable[Cell]:
    """The cell of every world, model, method and fit."""
    for seed in numbers(asked.worlds):
        made: list[tuple[World, Split]] = []  # only if some cell is missing
        for model, method, start in product(asked.models, asked.methods, range(asked.seeds)):
            about = {"world": settings.model_dump(), "seed": seed, "model": model, "method": method}
            about |= {"settings": own_settings(asked.set, model, method), "start": start}
            cell = kept.find(about)
            if cell is None and asked.stored:
                continue
            if cell is None:
                if not made:
                    world = make_latent_world(settings, Rng(seed))
                    made.append((world, split_leave_last_two(world.log)))
                cell = kept.keep(about, fit_in_world(*made[0], about))
            label = method if len(asked.models) == 1 else f"{model} {method}"
            yield {"label": label, "world": seed, **cell}


def fit_in_world(world: World, split: Split, about: Cell) -> Cell:
    """The numbers of one fit, in the world where it was made."""
    method, settings = ROWS.get(about["method"], (about["method"], {}))
    recipe = Recipe(about["model"], method, {**settings, **about["settings"]}, seed=about.get("start", 0))
    if about["method"] == "tuned":
        recipe = tuned_plain(split, about["model"], about["settings"])
    try:
        fitted = fit(split, recipe.suited_to(split.train))
    except TowpathError as error:  # one method that cannot is no reason to lose the others
        print(f"{about['model']} {about['method']}: {error}", flush=True)
        return {}
    true = evaluate(fitted.scorer, split, protocol="truth", relevance=world.relevance).metrics()
    full = evaluate(fitted.scorer, split).metrics()
    evaluated = np.unique(split.test.users)
    best = float(world.best_relevance(10, split.train, split.validation)[evaluated].mean())
    seconds = sum(row["seconds"] + row["validation_seconds"] for row in fitted.history)
    return {**true, "hit": full["hit"], "best": best, "seconds": seconds, "epochs": len(fitted.history)}


def tuned_plain(split: Split, model: str, settings: dict[str, Any]) -> Recipe:
    """Plain training with the settings whose validation clicks are most."""
    recipes = [Recipe(model, "plain", {**choice, **settings}) for choice in TUNED]
    hits = [evaluate(fit(split, one).scorer, split, on="validation").metrics()["hit"] for one in recipes]
    return recipes[int(np.argmax(hits))]


class Kept:
    """Finished fits, each in a file named after what its numbers depend on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, about: Cell) -> Path:
        text = json.dumps(about, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def find(self, about: Cell) -> Cell | None:
        path = self.path(about)
        return json.loads(path.read_text())["cell"] if path.is_file() else None

    def keep(self, about: Cell, cell: Cell) -> Cell:
        path = self.path(about)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"about": about, "cell": cell}))
        print(json.dumps({"seed": about["seed"], "method": about["method"], **cell}), flush=True)
        return cell


def write_table(path: Path, title: str, cells: Sequence[Cell], metric: str) -> None:
    """One row a method: mean and spread over worlds, and the paired difference to the first in percent."""
    values = values_of(cells, metric)
    rows = [row_of(label, values, cells) for label in values]
    heads = ("method", "worlds", "true clicks", "sd", "over the first, %", "low", "high", "shown_share", "s")
    best = np.mean([cell["best"] for cell in cells if "best" in cell] or [np.nan])
    write_rows(path, f"{title}. Best possible {best:.2f}", heads, rows)


def write_rows(path: Path, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table as CSV and as Markdown."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(head.replace(",", "") for head in heads), *(",".join(row) for row in rows)]
    path.with_name(path.name + ".csv").write_text("\n".join(lines) + "\n")
    text = [f"# {title}", "", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    text += ["| " + " | ".join(row) + " |" for row in rows]
    path.with_name(path.name + ".md").write_text("\n".join(text) + "\n")
    print("\n".join(text), flush=True)


def row_of(label: str, values: dict[str, dict[int, float]], cells: Sequence[Cell]) -> list[str]:
    own, first = values[label], values[next(iter(values))]
    gaps = np.array([100 * (own[w] / first[w] - 1) for w in own if w in first])
    mine = [cell for cell in cells if cell["label"] == label and "seconds" in cell]
    share = np.mean([cell.get("shown_share", np.nan) for cell in mine])
    seconds = np.mean([cell["seconds"] for cell in mine])
    numbers = np.array(list(own.values()))
    spread = numbers.std(ddof=1) if len(numbers) > 1 else 0.0
    low, high = interval(gaps)
    return [
        label, str(len(numbers)), f"{numbers.mean():.3f}", f"{spread:.3f}", f"{gaps.mean():+.1f}",
        f"{low:+.1f}", f"{high:+.1f}", f"{share:.2f}", f"{seconds:.1f}",
    ]  # fmt: skip


def interval(gaps: np.ndarray) -> tuple[float, float]:
    """The 95 % t-interval of the mean."""
    if len(gaps) < 2:
        return float("nan"), float("nan")
    half = stats.t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / len(gaps) ** 0.5
    return gaps.mean() - half, gaps.mean() + half


def own_settings(pairs: Sequence[str], model: str, method: str) -> dict[str, Any]:
    """What was set for all, then for this model or method."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        owner, dot, rest = key.rpartition(".")
        if not dot or owner in (model, method):
            found[rest] = value
    return found


def numbers(text: str) -> list[int]:
    """[500, 501, 502] of "500-502"."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--worlds", default="500-509", help="seeds of the worlds; reported are 500 and above")
    parser.add_argument("--exploration", type=float, nargs="+", default=[0.0, 0.1, 0.5, 1.0])
    parser.add_argument("--taste", type=float, nargs="+", default=[0.6])
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--random-named", action="store_true", help="logs name what was shown at random")
    parser.add_argument("--models", nargs="+", default=["mf"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1, help="fits in every world, of which the mean counts")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE or METHOD.KEY=VALUE")
    parser.add_argument("--stored", action="store_true", help="tables of the fits that are kept, no new ones")
    parser.add_argument("--suffix", default="", help="ending of the tables' names")
    parser.add_argument("--kept", type=Path, default=Path("build/impressions"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/impressions"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
