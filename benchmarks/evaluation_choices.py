"""What each choice of an evaluation does to Hit@10 and NDCG@10: seen items, ids, copies, a cut-off, ties.

python -m benchmarks.evaluation_choices [--data ml-1m] [--data-dir DIR] [--draws 10] [--out FOLDER]

One model is fitted once and ranks each user's test item against 100 sampled items. The rows change one choice
after the other, from the protocol `sampled` to the protocol `paper`. The ranks are computed here, not by the
package, and the first and the last row are also what the package gives (printed to compare).
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import towpath
from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.evaluation.protocols import NEGATIVES, raw_items
from towpath.models.scorer import Scorer, context_of
from towpath.rng import Rng

MODELS = ("popularity", "mf")
CHOICES = ("unseen items", "seen items too", "all ids, with replacement", "a copy is a hit")
CUT_OFFS = (None, 3.0, 4.0)
Numbers = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="ml-1m")
    parser.add_argument("--data-dir")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("build/evaluation-choices"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    reading = towpath.read(options.data, data_dir=options.data_dir)
    split = towpath.split(reading)
    write(
        options.out / "evaluation-choices.csv",
        ["model", "the 100 items", *METRICS],
        protocols(split, options.draws),
    )
    rows = [
        [name, *cut_off(options, value)] for name, value in zip(("none", "3", "4"), CUT_OFFS, strict=True)
    ]
    write(options.out / "lowest-rating.csv", ["lowest rating", *METRICS], rows)
    tied, moved = last_events(reading.interactions)
    print(f"Users whose last event shares its time with another: {tied:.1f} %; whose test item would be")
    print(f"another if ties were broken by item id instead of the row of the file: {moved:.1f} %.")


METRICS = ("Hit@10", "NDCG@10")


def write(path: Path, head: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    print(path.read_text(encoding="utf-8"))


def protocols(split: Split, draws: int) -> list[list[str]]:
    """A row for each model and choice: mean ± standard deviation over the draws of the negatives."""
    rows = []
    for model in MODELS:
        scorer = towpath.fit(split, model).scorer
        scores = all_scores(scorer, split)
        for choice in CHOICES:
            found = np.array([hit_and_ndcg(scores, split, choice, draw) for draw in range(draws)]) * 100
            rows.append([model, choice, *(f"{v.mean():.1f} ± {v.std(ddof=1):.1f}" for v in found.T)])
        for protocol in ("sampled", "paper"):
            own = towpath.evaluate(scorer, split, protocol=protocol).metrics()
            print(f"{model}, {protocol}: {100 * own['hit']:.1f} {100 * own['ndcg']:.1f}", flush=True)
    return rows


def all_scores(scorer: Scorer, split: Split) -> Numbers:
    """Every user's score of every item; the last column is an id that does not occur, below everything."""
    users, items = np.arange(split.train.n_users), torch.arange(split.train.n_items)[None]
    with torch.no_grad():
        found = scorer.score(context_of(scorer, users, split.before_test.histories), items).double().numpy()
    return np.hstack([found, np.full((len(found), 1), -np.inf)])


def hit_and_ndcg(scores: Numbers, split: Split, choice: str, draw: int) -> tuple[float, float]:
    users, targets = split.test.users, split.test.items.astype(np.int64)
    rng = Rng(draw).numpy("evaluation choices")
    items = drawn(split, choice, rng)
    copies = items == targets[:, None]
    own, others = scores[users, targets][:, None], scores[users[:, None], items]
    counted = ~copies if choice == CHOICES[-1] else np.ones_like(copies)
    ranks = ((others > own) & counted).sum(1) + ((others == own) & counted).sum(1) / 2
    further = copies.sum(1) if choice == CHOICES[-1] else np.zeros(len(users), dtype=int)
    hits = ndcgs = np.zeros(len(users))
    for copy in range(int(further.max()) + 1):
        there = (copy <= further) & (ranks + copy < 10)
        hits = hits + there
        ndcgs = ndcgs + there / np.log2(ranks + copy + 2)
    return float(hits.mean()), float(ndcgs.mean())


def drawn(split: Split, choice: str, rng: np.random.Generator) -> NDArray[np.int64]:
    """NEGATIVES items for each user of the test part."""
    users, n_items = split.test.users, split.train.n_items
    if choice in CHOICES[2:]:
        raw = raw_items(split.train.item_ids)
        return raw[rng.integers(len(raw), size=(len(users), NEGATIVES))]
    free = np.ones((split.train.n_users, n_items), dtype=bool)
    free[users, split.test.items] = False
    if choice == CHOICES[0]:
        for part in (split.train, split.validation):
            free[part.users, part.items] = False
    # The NEGATIVES smallest of independent uniform numbers: a set without replacement.
    keys = np.where(free[users], rng.random((len(users), n_items), dtype=np.float32), 2)
    return np.argpartition(keys, NEGATIVES, axis=1)[:, :NEGATIVES]


def cut_off(options: argparse.Namespace, lowest: float | None) -> list[str]:
    """Popularity under the protocol `paper` with ratings from here on."""
    cleaning = towpath.Cleaning(min_rating=lowest)
    split = towpath.split(towpath.read(options.data, data_dir=options.data_dir, cleaning=cleaning))
    found = towpath.evaluate(towpath.fit(split, "popularity"), split, protocol="paper").metrics()
    return [f"{100 * found[name]:.1f}" for name in ("hit", "ndcg")]


def last_events(log: Interactions) -> tuple[float, float]:
    """Users in per cent whose last time has several events; whose last item depends on who wins a tie."""
    assert log.times is not None
    rows = np.arange(len(log.users))
    by_row = np.lexsort((rows, log.times, log.users))
    by_item = np.lexsort((log.items, log.times, log.users))
    ends = np.cumsum(np.bincount(log.users, minlength=log.n_users)) - 1
    last, before = by_row[ends], by_row[ends - 1]
    tied = log.times[last] == log.times[before]
    return 100 * float(tied.mean()), 100 * float((log.items[last] != log.items[by_item[ends]]).mean())


if __name__ == "__main__":
    main()
