"""How far the log vouches for a policy: support, effective sample size, and the rows that decide.

A z-test of mean(w) = 1 is not among these: it passes where one row carries nearly all of the weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from towpath.bandit.estimators import effective_sample_size

Values = NDArray[np.float64]

# Shares of rows: below the first an estimate is hardly more than a few rows, below the second a warning.
RED, AMBER = 0.05, 0.2
# An item with fewer effective rows than this says little about itself.
ENOUGH_ROWS = 30
# A row with more of the weight than this decides the estimate.
INFLUENTIAL = 0.1
# Propensities look cut off from below if this share of rows has the smallest value, and it is this small.
FLOORED_SHARE, FLOORED_AT = 0.01, 1e-2


@dataclass(frozen=True)
class Overlap:
    """What the weights of a log say about a target; see the fields."""

    rows: int
    ess_share: float  # effective sample size / rows
    unsupported_mass: float  # 1 - mean(w); below zero where a few weights are huge
    unsupported_mass_se: float  # its standard error, itself unreliable where the weights are heavy
    never_logged_mass: float  # the target's share of actions that the log never took at that position
    mass_with_evidence: float  # the target's share of items with at least ENOUGH_ROWS effective rows
    largest_weight: float
    influential_row: int  # row of the file, from 0, with the largest weight
    influential_share: float  # its share of all weight
    snips_without_it: float
    warnings: tuple[str, ...]

    @property
    def level(self) -> Literal["red", "amber", "green"]:
        """How the effective sample size looks."""
        return "red" if self.ess_share < RED else "amber" if self.ess_share < AMBER else "green"

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """All numbers and warnings."""
        return {**vars(self), "warnings": list(self.warnings), "level": self.level}


@dataclass(frozen=True)
class WeightedRows:
    """What overlap is measured by; all (n,) but `mass`."""

    weights: Values
    rewards: Values
    propensities: Values
    actions: NDArray[np.int64]
    mass: Values  # (actions,) the target's share of each
    never_logged_mass: float


def item_evidence(weights: Values, actions: NDArray[np.int64], n_actions: int) -> Values:
    """Effective sample size of each action's own rows: (actions,)."""
    total = np.bincount(actions, weights=weights, minlength=n_actions)
    squares = np.bincount(actions, weights=weights**2, minlength=n_actions)
    return np.divide(total**2, squares, out=np.zeros(n_actions), where=squares > 0)


def assess_overlap(rows: WeightedRows) -> Overlap:
    """Everything that the weights say, and a sentence for each thing that is wrong."""
    w, n = rows.weights, len(rows.weights)
    top = int(w.argmax())
    rest = w.sum() - w[top]
    enough = item_evidence(w, rows.actions, len(rows.mass)) >= ENOUGH_ROWS
    known = {
        "rows": n,
        "ess_share": effective_sample_size(w) / n,
        "unsupported_mass": float(1 - w.mean()),
        "unsupported_mass_se": float(w.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan"),
        "never_logged_mass": rows.never_logged_mass,
        "mass_with_evidence": float(rows.mass[enough].sum()),
        "largest_weight": float(w[top]),
        "influential_row": top,
        "influential_share": float(w[top] / w.sum()) if w.sum() > 0 else 0.0,
        "snips_without_it": float((w @ rows.rewards - w[top] * rows.rewards[top]) / rest)
        if rest > 0
        else 0.0,
    }
    overlap = Overlap(**known, warnings=())  # type: ignore[arg-type]  # each value has the type of its field
    return Overlap(**{**vars(overlap), "warnings": tuple(_warnings(overlap, rows))})


def _warnings(overlap: Overlap, rows: WeightedRows) -> Sequence[str]:
    """What a reader must know before believing an estimate, most important first."""
    found = []
    if overlap.influential_share > INFLUENTIAL:
        snips = float(rows.weights @ rows.rewards / rows.weights.sum())
        found.append(
            f"One row of {overlap.rows:,} (row {overlap.influential_row + 1:,}) carries "
            f"{overlap.influential_share:.0%} of the weight; without it SNIPS is "
            f"{overlap.snips_without_it:.4f}, not {snips:.4f}. Do not decide on this log."
        )
    if overlap.level != "green":
        worth = overlap.ess_share * overlap.rows
        bound = RED if overlap.level == "red" else AMBER
        found.append(
            f"The {overlap.rows:,} rows are worth {worth:,.0f} of the target's own ({overlap.ess_share:.2%}, "
            f"below {bound:.0%}): estimates are uncertain and SNIPS leans towards what was logged."
        )
    if overlap.never_logged_mass > 0.001:
        found.append(
            f"{overlap.never_logged_mass:.1%} of what the target would show was not shown at that position: "
            "IPS counts it as worth nothing, SNIPS as worth the mean of the rest."
        )
    elif overlap.unsupported_mass > max(0.01, 2 * overlap.unsupported_mass_se):
        found.append(
            f"The weights have mean {1 - overlap.unsupported_mass:.3f} instead of 1 although every item of "
            "the target is in the log: by chance, or because the propensities are not those of this log, or "
            "because the target depends on what was logged."
        )
    found += excess_warning(rows.weights)
    if overlap.mass_with_evidence < 0.9:
        found.append(
            f"Only {overlap.mass_with_evidence:.0%} of what the target would show are items with at least "
            f"{ENOUGH_ROWS} effective rows."
        )
    return [*found, *_floored(rows.propensities, rows.actions)]


def excess_warning(weights: Values) -> list[str]:
    """A sentence if weights (n,) of a policy that knows nothing of these rows have a mean too far above one.

    Their expectation is at most one. A mean near one proves nothing, as one large weight may be missing.
    """
    mean, error = float(weights.mean()), float(weights.std() / np.sqrt(len(weights)))
    if mean <= 1 + max(0.05, 4 * error):
        return []
    return [
        f"The weights have mean {mean:.2f} (standard error {error:.2f}) where at most 1 is possible: the "
        "propensities are not those of these rows, and estimates are too high. If repeated showings of a "
        "pair were dropped, keep them (--repeats allow)."
    ]


def _floored(propensities: Values, actions: NDArray[np.int64]) -> list[str]:
    """A sentence if the smallest propensities look cut off rather than logged.

    One item that is shown least has the smallest one by right; several with the same one hardly do.
    """
    least = propensities.min()
    equal = propensities == least
    rows, items = int(equal.sum()), len(np.unique(actions[equal]))
    few = rows < max(2, FLOORED_SHARE * len(propensities)) or items < 2
    if few or least > FLOORED_AT or equal.all():
        return []
    return [
        f"{rows:,} rows of {items:,} items have the same smallest propensity {least:g}: it looks like a "
        "floor, and then weights and estimates are too small. Log the true chances."
    ]
