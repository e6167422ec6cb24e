"""What is stored of the learned weights of a run, and the statistics that the paper reports on them."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from towpath.diagnostics.weights import learns_weights, weigh_pairs
from towpath.experiments.paper.benchmarks import Benchmark
from towpath.experiments.result_store import Entry
from towpath.methods.recipe import Recipe
from towpath.training.fit import Fit

# Enough for means in bins, few enough to store for every fit.
MOST_STORED = 12_000


@dataclass(frozen=True)
class StoredPairs:
    """Training pairs with the weight that w gives them (mean one over the mask); all columns (n,)."""

    kind: ClassVar[str] = "pairs"

    interacted: NDArray[np.bool_]  # the label
    reweight_mask: NDArray[np.bool_]  # whether w reweighs the pair; where not, its weight is one
    shown: NDArray[np.bool_]  # whether f would show it
    scores: NDArray[np.float32]
    weights: NDArray[np.float32]
    exposure: NDArray[np.float32] | None = None  # true chance of having been shown, where it is known

    def where(self, keep: NDArray[np.bool_]) -> "StoredPairs":
        """The pairs where `keep` is true."""
        there = (f.name for f in fields(self) if getattr(self, f.name) is not None)
        return StoredPairs(**{name: getattr(self, name)[keep] for name in there})

    def to_entry(self) -> Entry:
        """One column for each that is known."""
        columns = {f.name: getattr(self, f.name) for f in fields(self)}
        return Entry({name: values for name, values in columns.items() if values is not None}, {})

    @classmethod
    def from_entry(cls, entry: Entry) -> "StoredPairs":
        """The stored pairs."""
        return cls(**entry.columns)


def pairs_of(fitted: Fit, benchmark: Benchmark, recipe: Recipe) -> StoredPairs | None:
    """An even sample of training pairs with their weights; None unless the method learns weights."""
    if not learns_weights(recipe):
        return None
    pairs = weigh_pairs(fitted.scorer, fitted.auxiliary_state, benchmark.split.train, recipe)
    pairs = pairs.where(np.arange(len(pairs)) % max(1, -(-len(pairs) // MOST_STORED)) == 0)
    exposure = None if benchmark.exposure is None else benchmark.exposure[pairs.users, pairs.items]
    scores, weights = (column.astype(np.float32) for column in (pairs.scores, pairs.weights))
    return StoredPairs(pairs.interacted, pairs.reweight_mask, pairs.shown, scores, weights, exposure)


# -- statistics of the paper; None where one is not defined -------------------------------------------------


def more_on_positives(pairs: StoredPairs) -> float | None:
    """Mean weight of what was interacted with minus that of what was not."""
    if not (pairs.reweight_mask & pairs.interacted).any():
        return None
    return _mean(pairs.weights[pairs.interacted]) - _mean(pairs.weights[~pairs.interacted])


def more_on_shown(pairs: StoredPairs) -> float | None:
    """Mean weight of what f would show minus that of the rest, among pairs that w reweighs."""
    inside = pairs.where(pairs.reweight_mask)
    return _mean(inside.weights[inside.shown]) - _mean(inside.weights[~inside.shown])


def rising_with_score(pairs: StoredPairs) -> float | None:
    """Rank correlation of weight and score among what f would show."""
    return _correlation(pairs, pairs.reweight_mask & pairs.shown, pairs.scores)


def rising_elsewhere(pairs: StoredPairs) -> float | None:
    """Rank correlation of weight and score among what f would not show."""
    return _correlation(pairs, pairs.reweight_mask & ~pairs.shown, pairs.scores)


def rising_with_exposure(pairs: StoredPairs) -> float | None:
    """Rank correlation of weight and true exposure among negatives."""
    if pairs.exposure is None:
        return None
    return _correlation(pairs, pairs.reweight_mask & ~pairs.interacted, pairs.exposure)


def even_on_positives(pairs: StoredPairs) -> float | None:
    """The rank correlation of weight and true exposure among negatives minus that among positives."""
    if pairs.exposure is None or not (pairs.reweight_mask & pairs.interacted).any():
        return None
    negatives, positives = (
        _correlation(pairs, pairs.reweight_mask & part, pairs.exposure)
        for part in (~pairs.interacted, pairs.interacted)
    )
    return negatives - positives


STATISTICS: dict[str, Callable[[StoredPairs], float | None]] = {
    "more on positives": more_on_positives,
    "more on shown": more_on_shown,
    "rising with score": rising_with_score,
    "rising elsewhere": rising_elsewhere,
    "rising with exposure": rising_with_exposure,
    "even on positives": even_on_positives,
}


def _mean(values: NDArray[np.float32]) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else float("nan")


def _correlation(pairs: StoredPairs, where: NDArray[np.bool_], x: NDArray[np.float32]) -> float:
    """Spearman's rank correlation of weight and x over these pairs; 0 where either does not vary."""
    weights, x = pairs.weights[where], x[where]
    if len(weights) < 3 or not np.ptp(weights) or not np.ptp(x):
        return 0.0
    return float(stats.spearmanr(weights, x).statistic)
