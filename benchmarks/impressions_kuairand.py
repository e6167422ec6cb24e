"""Methods on a real log of impressions, KuaiRand-Pure: the table of docs/results/impressions/kuairand-pure.

    python -m benchmarks.impressions_kuairand --data-dir DIR [--users 3000 --videos 1500] [--features]
    python -m benchmarks.impressions_kuairand --data-dir DIR --dial          transport along its penalty

The most active users and the most shown videos; ten days of impressions to learn from (the tenth validates),
the last four to evaluate on, without pairs that were shown before. AUC and NDCG@10 are within what a user was
shown, means over users with both labels; Hit@10 is that of clicks among the whole catalogue (protocol full).
The numbers of every fit are kept in --kept, as in benchmarks.impressions.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from scipy.stats import rankdata

from benchmarks.impressions import Cell, Kept, own_settings, write_rows
from towpath.data.feature_files import read_features
from towpath.data.feature_kinds import GivenColumns
from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import Vocabulary
from towpath.diagnostics.dial import dial_of
from towpath.errors import TowpathError
from towpath.evaluation.evaluate import evaluate
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.scorer import Scorer, context_of

METHODS = ("plain", "shown", "imitation", "ipw", "expomf", "esmm", "escm2", "conservative", "transport")
VALIDATION_FROM, TEST_FROM = 20220504, 20220505
METRICS = ("auc", "ndcg", "hit", "seconds")
DIAL = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # weights of likeness to the log
ON_DIAL = ("auc", "ndcg", "hit", "shown_share", "likeness")


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    kept = Kept(asked.kept)
    split = read_split(asked)
    name = f"kuairand-pure-{asked.model}" + ("-features" if asked.features else "")
    title = f"KuaiRand-Pure, {asked.model}, {split.train.n_users:,} users, {split.train.n_items:,} videos"
    if asked.features:
        title += ", with features"
    if asked.dial:
        rows = [row_of(split, asked, kept, "transport", penalty) for penalty in (*DIAL, None)]
        write_rows(asked.out / f"{name}-dial", f"{title}: transport by penalty", ("penalty", *ON_DIAL), rows)
        return
    rows = [row_of(split, asked, kept, method) for method in asked.methods]
    write_rows(asked.out / name, title, ("method", *METRICS), [row for row in rows if row])


def row_of(
    split: Split, asked: argparse.Namespace, kept: Kept, method: str, penalty: float | None = None
) -> list[str]:
    """Means and spreads over the seeds; empty where the method cannot be fitted."""
    cells = []
    for seed in range(asked.seeds):
        about = {"data": split.fingerprint, "seed": seed, "model": asked.model, "method": method}
        about["settings"] = own_settings(asked.set, asked.model, method)
        if asked.features:
            about["features"] = True
        if penalty is not None:
            about["settings"]["penalty"] = penalty
        cells.append(kept.find(about) or kept.keep(about, evaluated(split, about)))
    found = [cell for cell in cells if cell]
    if not found:
        return []
    label = ("chosen" if penalty is None else f"{penalty:g}") if asked.dial else method
    means = [np.array([cell[m] for cell in found]) for m in (ON_DIAL if asked.dial else METRICS)]
    return [label, *(f"{v.mean():.3f} ± {v.std():.3f}" for v in means)]


def read_split(asked: argparse.Namespace) -> Split:
    """The impressions of the chosen users and videos, exact repeats left out, in three parts by date."""
    names = ["user_id", "video_id", "date", "time_ms", "is_click"]
    table = pq.read_table(asked.data_dir / "kuairand-pure" / "impressions.parquet", columns=names)
    columns = np.unique(np.stack([table.column(n).to_numpy() for n in names], axis=1), axis=0)
    columns = columns[most_frequent(columns[:, 0], asked.users)]
    columns = columns[most_frequent(columns[:, 1], asked.videos)]
    columns = columns[np.lexsort((columns[:, 3], columns[:, 0]))]
    users, user_codes = np.unique(columns[:, 0], return_inverse=True)
    videos, video_codes = np.unique(columns[:, 1], return_inverse=True)
    whole = Interactions(
        users=user_codes.astype(np.int32),
        items=video_codes.astype(np.int32),
        user_ids=Vocabulary(pa.array(users)),
        item_ids=Vocabulary(pa.array(videos)),
        times=columns[:, 3],
        labels=columns[:, 4].astype(np.bool_),
    )
    dates = columns[:, 2]
    parts = [dates < VALIDATION_FROM, (dates >= VALIDATION_FROM) & (dates < TEST_FROM), dates >= TEST_FROM]
    tables = [whole.where(part).positives for part in parts]
    if asked.features:
        tables = with_features(tables, asked.data_dir / "kuairand-pure")
    return Split(*tables, "by date")


def most_frequent(codes: np.ndarray, count: int) -> np.ndarray:
    """Which rows belong to one of the `count` most frequent codes: (n,)."""
    values, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    best = np.zeros(len(values), dtype=np.bool_)
    best[np.argsort(-counts, kind="stable")[:count]] = True
    return best[places]


def with_features(parts: list[Interactions], folder: Path) -> list[Interactions]:
    """The same parts with the features of users and videos, as training alone would encode them."""
    train = parts[0]
    users, _ = read_features([folder / "users.parquet"], "user", train.user_ids, GivenColumns(key="user_id"))
    videos, _ = read_features(
        [folder / "videos.parquet"], "item", train.item_ids, GivenColumns(key="video_id")
    )
    known = users.fitted(train.histories.lengths > 0), videos.fitted(train.item_counts > 0)
    return [part.with_features(*known) for part in parts]


def evaluated(split: Split, about: Cell) -> Cell:
    """The numbers of one fit."""
    try:
        recipe = Recipe(about["model"], about["method"], about["settings"], about["seed"])
        fitted = fit(split, recipe.suited_to(split.train))
    except TowpathError as error:
        print(f"{about['method']}: {error}", flush=True)
        return {}
    auc, ndcg = within_shown(fitted.scorer, split)
    hit = evaluate(fitted.scorer, split).metrics()["hit"]
    seconds = sum(row["seconds"] for row in fitted.history)
    dial = dial_of(fitted.scorer, split)
    assert dial is not None
    return {"auc": auc, "ndcg": ndcg, "hit": hit, "seconds": seconds, **asdict(dial)}


def within_shown(scorer: Scorer, split: Split) -> tuple[float, float]:
    """AUC and NDCG@10 among what each user was shown in test, and never before: means over users."""
    test, before = split.test.rows, split.before_test
    new = ~np.isin(test.pair_keys(), before.rows.pair_keys())
    aucs, gains = [], []
    with torch.no_grad():
        for user in np.unique(test.users[new]):
            rows = np.flatnonzero((test.users == user) & new)
            items, first = np.unique(test.items[rows], return_index=True)
            labels = np.asarray(test.labels)[rows[first]]
            if labels.any() and not labels.all():
                context = context_of(scorer, np.array([user]), before.histories)
                scores = scorer.score(context, torch.from_numpy(items.astype(np.int64))[None])[0].numpy()
                aucs.append(auc_of(scores, labels))
                gains.append(ndcg_of(scores, labels))
    return float(np.mean(aucs)), float(np.mean(gains))


def auc_of(scores: np.ndarray, labels: np.ndarray) -> float:
    """The chance that a clicked item scores higher than one that was not, ties counting half."""
    clicks = labels.sum()
    ranks = rankdata(scores)[labels].sum() - clicks * (clicks + 1) / 2
    return float(ranks / (clicks * (len(labels) - clicks)))


def ndcg_of(scores: np.ndarray, labels: np.ndarray, k: int = 10) -> float:
    """Discounted clicks of the first k as a share of the best order's."""
    discounts = 1 / np.log2(np.arange(len(labels)) + 2)
    order = np.argsort(-scores, kind="stable")
    gains = (labels[order] * discounts)[:k].sum()
    return float(gains / discounts[: min(k, int(labels.sum()))].sum())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--users", type=int, default=3000)
    parser.add_argument("--videos", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--model", default="mf")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--features", action="store_true", help="features of users and videos (wide_deep)")
    parser.add_argument("--dial", action="store_true", help="transport along its penalty instead")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE or METHOD.KEY=VALUE")
    parser.add_argument("--kept", type=Path, default=Path("build/impressions"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/impressions"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
