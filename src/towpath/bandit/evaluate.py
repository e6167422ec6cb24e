"""Off-policy evaluation of one target on one log: every estimate, every interval, and what to beware of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from towpath.bandit.estimators import ESTIMATORS, LoggedRows, Scales, Values
from towpath.bandit.log import BanditLog
from towpath.bandit.overlap import Overlap, WeightedRows, assess_overlap
from towpath.bandit.policies import Policy, apply_policy
from towpath.bandit.reward_model import fit_reward_model
from towpath.bandit.tuning import tune_scales
from towpath.errors import ConfigError, DataError, unknown_name
from towpath.rng import Rng
from towpath.stats.estimate import Estimate
from towpath.stats.intervals import (
    RatioRows,
    bernstein_interval,
    betting_interval,
    bootstrap_intervals,
    gamma_interval,
    normal_interval,
)

INTERVALS = ("gamma", "betting", "normal", "bootstrap", "empirical-bernstein")
# What each rests on, besides rows that are independent of each other and propensities that are true.
ASSUMPTIONS = {
    "gamma": "rewards of 0 and 1 that are rare; no theorem, conservative in simulation",
    "betting": "lower end: nothing; upper end: the largest possible weight, or for ips full support",
    "normal": "many rewarded rows of similar weight; too short where few rows carry the weight",
    "bootstrap": "as normal: what is not among the rows cannot be resampled",
    "empirical-bernstein": "the largest possible weight (--max-weight); without it the largest seen",
}
# Those that estimate what the target would earn; the others add a bias that no interval knows of.
UNBIASED = ("ips", "snips", "dr", "sndr")
_COUNTED = ("ips", "clipped", "snips", "sub-gaussian")
_RATIOS = ("snips", "sndr")


@dataclass(frozen=True)
class Evaluating:
    """How a target is evaluated."""

    scales: Scales = field(default_factory=Scales)
    tune: str | None = None  # slope or bias-variance: choose the scales on the log
    cross_fit: int = 1  # folds of the reward model
    max_weight: float | None = None  # the largest weight that is possible, where it is known
    intervals: Sequence[str] = INTERVALS
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        for name in self.intervals:
            if name not in INTERVALS:
                raise unknown_name("interval", name, INTERVALS)
        if self.cross_fit < 1:
            raise ConfigError(
                f"The folds of --cross-fit should be 1 or more, and {self.cross_fit} was given."
            )


@dataclass(frozen=True)
class OffPolicyEvaluation:
    """All estimates of a target's value, each under every interval that applies to it."""

    target: str
    values: Mapping[str, float]
    estimates: Mapping[str, Mapping[str, Estimate]]  # estimator -> interval -> estimate
    rows: Mapping[str, RatioRows]  # estimator -> its per-row values
    overlap: Overlap
    scales: Scales
    logged_value: Estimate  # what the log itself earned
    notes: tuple[str, ...] = ()
    log_warnings: tuple[str, ...] = ()

    @property
    def weights(self) -> Values:
        """The weight w of every row: (n,)."""
        return self.rows["snips"].denominator

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before believing a number."""
        return (*self.log_warnings, *self.overlap.warnings)

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The evaluation as the command line prints it."""
        return {
            "rows": self.overlap.rows,
            "target": self.target,
            "logged_value": self.logged_value.mean,
            "ess_share": self.overlap.ess_share,
            "unsupported_mass": self.overlap.unsupported_mass,
            "estimates": {
                name: {
                    "value": self.values[name],
                    "biased": name not in UNBIASED,
                    "intervals": {how: [e.low, e.high] for how, e in found.items()},
                }
                for name, found in self.estimates.items()
            },
            "overlap": self.overlap.to_json(),
            "scales": vars(self.scales),
            "intervals": {how: e.how for found in self.estimates.values() for how, e in found.items()},
            "assumptions": {
                how: ASSUMPTIONS[how] for how in INTERVALS if any(how in e for e in self.estimates.values())
            },
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def evaluate_policy(
    log: BanditLog,
    policy: Policy,
    how: Evaluating = Evaluating(),  # noqa: B008  # frozen
) -> OffPolicyEvaluation:
    """What the policy would have earned where the log was made, by every estimator.

    Rows count as independent: where several positions of one request are logged, intervals are too short
    unless their rewards do not depend on each other.
    """
    if log.propensities is None:
        raise DataError(
            "Off-policy evaluation needs the propensity of what was shown in every row, and the log has "
            "none; name the column, or ask for estimated ones (--estimate-propensities)."
        )
    model = fit_reward_model(log, how.cross_fit)
    on_log = apply_policy(policy, log, model.tables, model.folds)
    rows = LoggedRows(on_log.chosen / log.propensities, log.rewards, model.predicted(log), on_log.expected)
    _refuse_no_overlap(rows, policy)
    how = replace(how, max_weight=how.max_weight or on_log.largest_weight(log.propensities))
    scales = how.scales if how.tune is None else tune_scales(rows, how.scales, how.tune)
    per_row = {name: estimator(rows, scales) for name, estimator in ESTIMATORS.items()}
    weighted = WeightedRows(
        rows.weights, log.rewards, log.propensities, log.actions, on_log.mass, on_log.unseen
    )
    return OffPolicyEvaluation(
        target=policy.description,
        values={name: found.value for name, found in per_row.items()},
        estimates=_all_intervals(per_row, rows, scales, how),
        rows=per_row,
        overlap=assess_overlap(weighted),
        scales=scales,
        logged_value=normal_interval(log.rewards),
        notes=log.notes,
        log_warnings=log.warnings,
    )


def _refuse_no_overlap(rows: LoggedRows, policy: Policy) -> None:
    if not rows.weights.any():
        raise DataError(
            f"Nothing that the log shows in its {len(rows):,} rows would be shown by the target "
            f"({policy.description}): there is no overlap, so the log says nothing about it; evaluate a "
            "target that shares items with the log, or mix it with chance (--epsilon)."
        )


def _all_intervals(
    per_row: Mapping[str, RatioRows], rows: LoggedRows, scales: Scales, how: Evaluating
) -> dict[str, dict[str, Estimate]]:
    """Every interval of every estimator, in the order that was asked for."""
    found = {name: _intervals(name, one, rows, scales, how) for name, one in per_row.items()}
    if "bootstrap" in how.intervals:
        rng = Rng(how.seed).numpy("ope", "bootstrap")
        drawn = bootstrap_intervals(list(per_row.values()), rng)
        for name, estimate in zip(per_row, drawn, strict=True):
            found[name]["bootstrap"] = _within(estimate, estimate.mean)
    return {name: {one: kinds[one] for one in how.intervals if one in kinds} for name, kinds in found.items()}


def _intervals(
    name: str, found: RatioRows, rows: LoggedRows, scales: Scales, how: Evaluating
) -> dict[str, Estimate]:
    """Every interval but the bootstrap that was asked for and applies.

    Gamma intervals are for weighted counts, so for rewards of 0 and 1 without a reward model; bounds of the
    values are needed by Bernstein and betting, which a ratio does not have.
    """
    lower, upper = value_bounds(name, scales, how.max_weight or float(rows.weights.max()))
    values = found.linearised()
    makers: dict[str, Callable[[], Estimate]] = {
        "normal": lambda: normal_interval(values),
    }
    if name not in _RATIOS:
        makers["empirical-bernstein"] = lambda: bernstein_interval(values, lower, upper)
        opposite = rows.weights * (1 - rows.rewards) if name == "ips" and how.max_weight is None else None
        makers["betting"] = lambda: betting_interval(values, lower, upper, opposite=opposite)
    if name in _COUNTED and np.isin(rows.rewards, (0, 1)).all():
        weights = _count_weights(name, rows, scales)
        makers["gamma"] = lambda: gamma_interval(weights, rows.rewards)
    return {one: _within(makers[one](), found.value) for one in how.intervals if one in makers}


def value_bounds(name: str, scales: Scales, max_weight: float) -> tuple[float, float]:
    """Between which numbers a per-row value of this estimator lies, when no weight is above `max_weight`.

    >>> value_bounds("dros", Scales(dros=100.0), 1000.0)
    (-5.0, 6.0)
    """
    largest = {
        "clipped": min(max_weight, scales.clip),
        "switch-dr": min(max_weight, scales.tau),
        "dros": min(max_weight, np.sqrt(scales.dros) / 2),
        "sub-gaussian": min(max_weight, 1 / scales.sub_gaussian if scales.sub_gaussian > 0 else np.inf),
        "dm": 0.0,
    }.get(name, max_weight)
    if name in ("ips", "clipped", "sub-gaussian"):
        return 0.0, float(largest)
    return -float(largest), 1 + float(largest)


def _count_weights(name: str, rows: LoggedRows, scales: Scales) -> Values:
    """What each reward counts for: (n,)."""
    if name == "snips":
        return rows.weights / rows.weights.mean()
    certain = replace(rows, rewards=np.ones(len(rows)))
    return ESTIMATORS[name](certain, scales).numerator


def _within(estimate: Estimate, value: float) -> Estimate:
    """The same interval around the estimate's own value, cut where no policy's value can lie."""
    low, high = max(0.0, estimate.low), min(1.0, estimate.high)
    return Estimate(value, low, max(low, high), estimate.n, estimate.how, estimate.level)
