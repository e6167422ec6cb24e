"""The paper's bounds with the numbers of a run: which can be computed here, and whether they hold."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from towpath.bandit.transport import lipschitz_constant
from towpath.data.interactions import Interactions
from towpath.diagnostics.bounds import (
    Bound,
    Sample,
    SgnsDivergence,
    co_occurrence,
    empirical_bernstein_bound,
    empirical_divergence,
    importance_weighting_bound,
    lower_order,
    pac_bayes_bound,
    sgns_divergence,
    theorem_1_terms,
    theorem_2_terms,
)
from towpath.diagnostics.distances import SAMPLE, Pairs
from towpath.diagnostics.list_overlap import ListOverlap
from towpath.diagnostics.log_view import HeldOut
from towpath.diagnostics.representation import Representation
from towpath.rng import Rng
from towpath.training.weighed_pairs import WeighedPairs

_PLUGGED = "; here with the largest weight and the divergence of the sample, so nothing is guaranteed"


@dataclass(frozen=True)
class RunNumbers:
    """What the bounds are computed from."""

    held_out: HeldOut
    recommended: Pairs
    vectors: Representation
    distance: float  # between what was learned from and what would be shown: rho of Theorem 2
    overlap: ListOverlap | None = None  # where propensities are logged
    weighted: WeighedPairs | None = None  # where the method learned weights

    @property
    def has_weights(self) -> bool:
        """Whether propensities are logged and some row is one that the lists would show."""
        return self.overlap is not None and bool(self.overlap.weights.any()) and len(self.overlap.weights) > 1


@dataclass(frozen=True)
class ComputedBounds:
    """The bounds that could be computed, and a sentence for each that could not."""

    bounds: tuple[Bound, ...]
    left_out: tuple[str, ...]


def compute_bounds(numbers: RunNumbers, rng: Rng) -> ComputedBounds:
    """Every bound that these numbers allow, on the share of slots that are not clicked."""
    left_out = []
    if not numbers.has_weights:
        why = "the log has none" if numbers.overlap is None else "no logged row is one the lists would show"
        left_out.append(f"Importance weighting and PAC-Bayes need propensities and overlap, and {why}.")
    if numbers.weighted is None and not numbers.has_weights:
        left_out.append(
            "Theorem 1 needs weights, learned by the method or from propensities; there are none."
        )
    if numbers.held_out.rows.labels is None:
        left_out.append("Theorem 2 needs what was shown and not clicked, and the log holds clicks alone.")
    return ComputedBounds(tuple(_bounds(numbers, rng)), tuple(left_out))


def _bounds(numbers: RunNumbers, rng: Rng) -> Iterator[Bound]:
    overlap = numbers.overlap if numbers.has_weights else None
    if overlap is not None:
        yield from _by_weights(overlap, by_clicks=numbers.held_out.by_clicks)
    if numbers.weighted is not None:
        found = theorem_1_terms(numbers.weighted.weights, _logistic_losses(numbers.weighted))
        yield replace(found, says=f"{found.says}; learned weights, logistic loss of training pairs")
    elif overlap is not None:
        found = theorem_1_terms(overlap.weights, 1 - overlap.rewards)
        yield replace(found, says=f"{found.says}; importance weights in place of learned ones")
    if numbers.held_out.rows.labels is not None:
        yield _theorem_2(numbers, rng.numpy("diagnose", "theorem 2"))


def _by_weights(found: ListOverlap, *, by_clicks: bool) -> Iterator[Bound]:
    """Bounds by importance weighting: explicit where the log was made with one propensity throughout.

    Then the largest weight is known, and the divergence of even lists from an even log is the same number.
    What was never logged no weight can stand for, and rows that were picked by their clicks are no sample.
    """
    weights, losses = found.weights, 1 - found.rewards
    explicit = found.most is not None and found.overlap.never_logged_mass == 0 and not by_clicks
    most = float(weights.max()) if found.most is None else found.most
    divergence = empirical_divergence(weights) if found.most is None else found.most
    sample = Sample(float((weights * losses).mean()), len(weights), most, divergence)
    bounds = (
        importance_weighting_bound(sample),
        empirical_bernstein_bound(weights * losses, most),
        pac_bayes_bound(sample, kl=0.0, uncovered=found.overlap.never_logged_mass),
        lower_order(divergence, sample.n),
    )
    for one in bounds:
        yield one if explicit else replace(one, kind="order only", says=one.says + _PLUGGED)


def _theorem_2(numbers: RunNumbers, rng: np.random.Generator) -> Bound:
    """Losses at a sample of logged pairs, mass at a sample of recommended ones."""
    rows = numbers.held_out.rows
    assert rows.labels is not None  # by whoever calls
    drawn = rng.choice(len(rows), size=min(SAMPLE, len(rows)), replace=False)
    losses = 1 - rows.labels[drawn].astype(np.float64)
    known = numbers.vectors.pairs(rows.users[drawn], rows.items[drawn])
    shown = numbers.recommended.sample(SAMPLE, rng)
    distances = cdist(numbers.vectors.pairs(shown.users, shown.items), known)
    steepest = lipschitz_constant(losses, cdist(known, known))
    even = np.full(SAMPLE, 1 / SAMPLE)
    found = theorem_2_terms(losses, even, distances, numbers.distance, steepest)
    return replace(found, says=f"{found.says}; on samples of {SAMPLE} pairs")


def _logistic_losses(pairs: WeighedPairs) -> NDArray[np.float64]:
    return np.logaddexp(0, np.where(pairs.interacted, -pairs.scores, pairs.scores))


def sgns_of(rows: Interactions, recommended: Pairs, cells: NDArray[np.int64]) -> SgnsDivergence:
    """How far log and lists are apart for skip-gram, over cells of users and bands of items by popularity.

    Pairs themselves hardly ever occur in both.
    """
    counts = np.bincount(rows.items, minlength=rows.n_items)
    bands = np.searchsorted(np.quantile(counts, [0.5, 0.8, 0.95]), counts, side="left")
    tables = [
        np.bincount(cells[p.users] * 4 + bands[p.items], minlength=4 * (int(cells.max()) + 1)).reshape(-1, 4)
        for p in (Pairs(rows.users, rows.items), recommended)
    ]
    first, second = (co_occurrence(table.astype(np.float64)).ravel() for table in tables)
    return sgns_divergence(first, second)
