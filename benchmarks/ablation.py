"""What each ingredient of transport, and each model, contributes: a line per variant, paired with the first.

    python -m benchmarks.ablation ml-1m --data-dir DIR --seeds 5 --jobs 2 --only plain,transport --out FILE

Every variant scores the same number of pairs per epoch, on the same split, seeds and evaluation negatives.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from towpath.data.sources import read
from towpath.data.split import split_leave_last_two
from towpath.experiments.compare import compare_fits
from towpath.experiments.pool import Work
from towpath.experiments.run_result import EvaluationConfig, RunResult
from towpath.methods.recipe import Recipe
from towpath.models.registry import is_trainable

IDS: dict[str, Any] = {"players": "models", "floor": 0.5, "ceiling": 2.0, "penalty": 0.5}
SAMPLED: dict[str, Any] = {"pairs": "sampled", "loss": "logistic"}
VARIANTS: dict[str, Recipe] = {
    "plain": Recipe("mf", "plain"),
    "plain, same hard negatives": Recipe("mf", "plain", {"hard_negatives": 1}),
    "transport": Recipe("mf", "transport"),
    "transport, uniform negatives": Recipe("mf", "transport", {"hard_negatives": 0}),
    "transport, w in [.5, 2]": Recipe("mf", "transport", {"floor": 0.5, "ceiling": 2.0}),
    "transport, w in [.2, 5]": Recipe("mf", "transport", {"floor": 0.2, "ceiling": 5.0}),
    "no w (w = 1)": Recipe("mf", "transport", {"floor": 1.0, "ceiling": 1.0}),
    "no g (penalty 0)": Recipe("mf", "transport", {"penalty": 0.0}),
    "penalty .3": Recipe("mf", "transport", {"penalty": 0.3}),
    "penalty 3": Recipe("mf", "transport", {"penalty": 3.0}),
    "target distance 1": Recipe("mf", "transport", {"target_distance": 1.0}),
    "domain sampled": Recipe("mf", "transport", {"domain": "sampled"}),
    "domain ranking": Recipe("mf", "transport", {"domain": "ranking"}),
    "relaxation soft": Recipe("mf", "transport", {"relaxation": "soft"}),
    "w on positives too": Recipe("mf", "transport", {"reweight": "all"}),
    "models": Recipe("mf", "transport", IDS),
    "models, uniform negatives": Recipe("mf", "transport", IDS | {"hard_negatives": 0}),
    "models, all pairs, domain sampled": Recipe(
        "mf", "transport", IDS | {"reweight": "all", "domain": "sampled"}
    ),
    "models, 5 critic steps": Recipe("mf", "transport", IDS | {"steps_g": 5}),
    "models, frozen critic": Recipe("mf", "transport", IDS | {"lipschitz": "frozen"}),
    "wide and deep, ids and page only": Recipe("wide_deep", "plain", {"side_features": False}),
    "wide and deep": Recipe("wide_deep"),
    "ncf": Recipe("ncf"),
    "attention": Recipe("attention"),
    # The game weighs single pairs, so plain training with the same loss is what it is paired with.
    "attention, sampled pairs": Recipe("attention", "plain", SAMPLED),
    "attention, sampled pairs, same hard negatives": Recipe(
        "attention", "plain", SAMPLED | {"hard_negatives": 1}
    ),
    "attention, transport": Recipe("attention", "transport", SAMPLED),
    "ease": Recipe("ease"),
}
# The tables are about the game itself, so that it is played from the start.
VARIANTS |= {
    name: replace(recipe, settings={**recipe.settings, "warm_epochs": 1})
    for name, recipe in VARIANTS.items()
    if recipe.method == "transport"
}


def main() -> None:
    asked = _arguments()
    names = [name.strip() for name in asked.only.split(";")] if asked.only else list(VARIANTS)
    reading = read(asked.data, data_dir=asked.data_dir)
    split = split_leave_last_two(reading.interactions)
    chosen = {name: _with(VARIANTS[name], asked.set) for name in names}

    def watch(done: RunResult) -> None:
        numbers = {
            e.protocol: {m: round(100 * v, 3) for m, v in e.metrics().items()} for e in done.evaluations
        }
        line = {
            "label": done.label,
            "seed": done.seed,
            "epochs": done.epochs,
            "seconds": done.seconds,
            **numbers,
        }
        print(json.dumps(line), flush=True)

    evaluation = EvaluationConfig(("full", "sampled"), on=asked.on)
    work = Work(jobs=asked.jobs, on_result=watch)
    result = compare_fits(split, chosen, seeds=range(asked.seeds), evaluation=evaluation, work=work)
    text = _table(result.to_json(), names)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text)


def _with(recipe: Recipe, settings: list[str]) -> Recipe:
    extra = dict(part.split("=", 1) for part in settings) if is_trainable(recipe.model) else {}
    # The same for all, as in the tables of docs/results.md: mf has other defaults by itself.
    pairs = {"negatives": 3, "l2": 2e-3} if recipe.model == "mf" else {}
    return Recipe(recipe.model, recipe.method, {**pairs, **extra, **recipe.settings})


def _table(result: dict[str, Any], names: list[str]) -> str:
    """Means with standard deviations over seeds, and differences to the first with 95 % intervals, x 100."""
    columns = [("full", "hit"), ("full", "ndcg"), ("sampled", "hit"), ("sampled", "ndcg")]
    rows = {(r["label"], r["protocol"], r["metric"]): r for r in result["rows"]}
    gaps = {(d["a"], d["protocol"], d["metric"]): d for d in result["differences"]}
    lines = ["| variant | " + " | ".join(f"{p} {m}@10" for p, m in columns) + " |", "|---" * 5 + "|"]
    for name in names:
        cells = []
        for column in columns:
            row, gap = rows[name, *column], gaps.get((name, *column))
            cell = f"{100 * row['mean']:.2f} ± {100 * (row['sd'] or 0):.2f}"
            if gap is not None:
                cell += f" ({100 * gap['mean']:+.2f}: {100 * gap['low']:+.2f} to {100 * gap['high']:+.2f})"
            cells.append(cell)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--only", help="variants, separated by ';'; the first is what the others are paired with"
    )
    parser.add_argument(
        "--set", action="append", default=[], help="KEY=VALUE for every model that is trained"
    )
    parser.add_argument("--on", choices=["test", "validation"], default="test")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
