"""How the defaults of methods on impressions were chosen: by validation alone, with equal budgets.

    python -m benchmarks.impressions_choice                                  every method, then the choices
    python -m benchmarks.impressions_choice --methods shown transport        some of them

Every method tries the same number of settings, drawn at random from its own space (SPACES), in the same
worlds: 700 x 400, exploration 0, .1, .5 and 1, a poor, a usual and a good logger, seeds below 100 (tables are
reported on 500 to 509). Two numbers of a fit need no truth: Hit@10 of the validation clicks in the whole
catalogue, and the AUC of clicks within what was shown in the validation part. Each is standardised over the
settings of a method in a world; the setting with the highest mean of both over all worlds is the choice. True
clicks are recorded to tell afterwards what the truth would have chosen, and take no part. Finished fits are
kept as in benchmarks.impressions.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.impressions import SIZES, Cell, Kept, numbers, write_rows
from towpath.data.split import Split, split_leave_last_two
from towpath.evaluation.evaluate import evaluate
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world
from towpath.worlds.world import World

BUDGET = 6  # settings that every method tries
KINDS = ((0.0, 0.6), (0.1, 0.6), (0.5, 0.6), (1.0, 0.6), (0.5, 0.2), (0.5, 0.9))  # exploration, logger_taste

Space = dict[str, tuple[Any, ...]]  # values of any type
RATES: Space = {"learning_rate": (0.003, 0.01, 0.03), "l2": (0.002, 0.005, 0.01, 0.02, 0.04, 0.08)}
SPACES: dict[str, Space] = {
    "plain": {**RATES, "negatives": (3, 10, 20)},
    "shown": RATES,
    "imitation": RATES,
    "esmm": RATES,
    "escm2": {**RATES, "counterfactual": (0.03, 0.1, 0.3, 1.0), "floor": (0.02, 0.05, 0.2)},
    "conservative": {**RATES, "conservatism": (0.1, 0.3, 1.0, 3.0), "negatives": (3, 10)},
    "ipw": {**RATES, "floor": (0.05, 0.1, 0.3), "power": (0.25, 0.5, 1.0)},
    "expomf": {
        "ridge_users": (1.0, 3.0, 10.0, 30.0),
        "ridge_items": (1.0, 3.0, 10.0, 30.0),
        "precision": (0.3, 1.0, 3.0),
        "prior_weight": (0.0, 1.0, 10.0),
        "known_exposure": (False, True),
    },
    "transport": {
        "library_rate": (0.005, 0.01, 0.02),
        "library_l2": ((0.01, 0.03), (0.02, 0.06), (0.04, 0.12), (0.01, 0.02, 0.06)),
        "stack_ridge": (3.0, 10.0, 30.0),
        "member_dim": (8, 16),
        "held_out": (0.2, 1 / 3),
    },
}


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    kept = Kept(asked.kept)
    rows = known_rows(asked.out.with_name(asked.out.name + ".csv"))
    for method in asked.methods:
        candidates = drawn(SPACES[method])
        cells = list(all_cells(method, candidates, numbers(asked.worlds), kept))
        rows[method] = row_of(method, candidates, np.array(cells))
    heads = ("method", "chosen by validation", "true clicks", "of the best by the truth, %")
    worlds = len(KINDS) * len(numbers(asked.worlds))
    write_rows(
        asked.out,
        f"Defaults chosen among {BUDGET} settings of each method in {worlds} worlds",
        heads,
        [rows[method] for method in SPACES if method in rows],
    )


def known_rows(table: Path) -> dict[str, list[str]]:
    """The rows of methods that were searched before."""
    lines = table.read_text().splitlines()[1:] if table.is_file() else []
    return {row[0]: row for row in (line.split(",") for line in lines)}


def drawn(space: Space) -> list[dict[str, Any]]:
    """Different settings at random from the space, the same ones every time."""
    draw = Rng(0).numpy("choice", *space)
    found: list[dict[str, Any]] = []
    while len(found) < BUDGET:
        one = {key: values[draw.integers(len(values))] for key, values in space.items()}
        if one not in found:
            found.append(one)
    return found


def all_cells(method: str, candidates: list[dict[str, Any]], seeds: list[int], kept: Kept) -> Iterable[Any]:
    """For every world and setting: Hit and AUC on validation, and true clicks, (worlds, settings, 3)."""
    for exploration, taste in KINDS:
        for seed in seeds:
            settings = LatentWorld(exploration=exploration, logger_taste=taste, **SIZES["small"])
            made: list[tuple[World, Split]] = []  # only if some cell is missing
            row = []
            for candidate in candidates:
                about = {
                    "world": settings.model_dump(),
                    "seed": seed,
                    "method": method,
                    "settings": candidate,
                }
                cell = kept.find({**about, "choice": True})
                if cell is None:
                    if not made:
                        world = make_latent_world(settings, Rng(seed))
                        made.append((world, split_leave_last_two(world.log)))
                    cell = kept.keep({**about, "choice": True}, validated(*made[0], about))
                row.append([cell["hit"], cell["auc"], cell["rel"]])
            yield row


def validated(world: World, split: Split, about: Cell) -> Cell:
    """The numbers of one fit by the validation part, and true clicks."""
    fitted = fit(split, Recipe("mf", about["method"], about["settings"], seed=0))
    hit = evaluate(fitted.scorer, split, on="validation").metrics()["hit"]
    auc = evaluate(fitted.scorer, split, on="validation", protocol="listed").metrics()["auc"]
    true = evaluate(fitted.scorer, split, protocol="truth", relevance=world.relevance).metrics()["rel"]
    return {"hit": hit, "auc": auc, "rel": true}


def row_of(method: str, candidates: list[dict[str, Any]], cells: np.ndarray) -> list[str]:
    """The setting with the highest standardised validation numbers; cells: (worlds, settings, 3)."""
    spread = cells.std(axis=1, keepdims=True)
    standard = (cells - cells.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)
    chosen = int(standard[:, :, :2].mean(axis=(0, 2)).argmax())
    rel = cells[:, chosen, 2].mean()
    # Clicks of a world count alike, whatever its level.
    relative = (cells[:, :, 2] / cells[:, :, 2].max(axis=1, keepdims=True)).mean(axis=0)
    text = " ".join(f"{key}={short(value)}" for key, value in candidates[chosen].items())
    share = 100 * relative[chosen] / relative.max()
    return [method, text, f"{rel:.2f}", f"{share:.1f}"]


def short(value: Any) -> str:
    """A setting in a cell of a table, without commas."""
    return "/".join(map(short, value)) if isinstance(value, tuple) else f"{value:g}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--worlds", default="11", help="seeds of the worlds, below 100")
    parser.add_argument("--methods", nargs="+", default=list(SPACES), choices=SPACES)
    parser.add_argument("--kept", type=Path, default=Path("build/impressions"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/impressions/choice"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
