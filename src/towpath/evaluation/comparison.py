"""Several models on the same users and seeds: means over seeds, and paired differences with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.errors import ConfigError
from towpath.evaluation.display import html_table
from towpath.evaluation.result import Evaluation
from towpath.rng import Rng
from towpath.stats.estimate import Estimate
from towpath.stats.intervals import LEVEL
from towpath.stats.spread import mean_and_deviation

# Entries of the resampling matrix held at once: 16 MB.
_COUNTS_AT_ONCE = 2**21


@dataclass(frozen=True)
class MetricSummary:
    """A metric's mean over seeds, with the standard deviation between them (None if there is one seed)."""

    label: str
    protocol: str
    metric: str
    estimate: Estimate  # over seeds
    sd: float | None

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return self.estimate.mean

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The summary as plain numbers and texts."""
        own = {"label": self.label, "protocol": self.protocol, "metric": self.metric}
        spread = {"n": self.estimate.n, "how": self.estimate.how}
        return own | {"mean": self.estimate.mean, "sd": self.sd} | spread


@dataclass(frozen=True)
class Difference:
    """How much higher `a` is than the baseline `b`, paired by user and seed."""

    a: str
    b: str
    protocol: str
    metric: str
    estimate: Estimate

    @property
    def mean(self) -> float:
        """The mean difference over users and seeds."""
        return self.estimate.mean

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.estimate.low

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.estimate.high

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The difference as plain numbers and texts."""
        own = {"a": self.a, "b": self.b, "protocol": self.protocol, "metric": self.metric}
        return own | {name: getattr(self.estimate, name) for name in ("mean", "low", "high", "n", "how")}


@dataclass(frozen=True)
class Comparison:
    """All labels under all protocols; every difference is to the first label."""

    on: str
    k: int
    users: int
    seeds: int
    rows: tuple[MetricSummary, ...]
    differences: tuple[Difference, ...]
    # What the log has seen of the lists that are compared, as JSON; empty where it was not looked at.
    evidence: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # sentences about differences that rest on what was never shown

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The comparison as plain numbers, texts and lists."""
        return vars(self) | {
            "rows": [row.to_json() for row in self.rows],
            "differences": [difference.to_json() for difference in self.differences],
            "warnings": list(self.warnings),
        }

    def _repr_html_(self) -> str:
        means = [(row.label, row.protocol, row.metric, row.mean, row.sd) for row in self.rows]
        gaps = [(d.a, d.b, d.protocol, d.metric, d.mean, d.low, d.high) for d in self.differences]
        title = f"{self.on}, k = {self.k}, {self.users:,} users, {self.seeds:,} seeds"
        return html_table(title, ("", "protocol", "metric", "mean", "sd"), means) + html_table(
            "Differences a - b, with 95 % intervals",
            ("a", "b", "protocol", "metric", "mean", "low", "high"),
            gaps,
        )


def compare(
    evaluations: Mapping[str, Sequence[Evaluation]], *, resamples: int = 2000, rng: Rng
) -> Comparison:
    """Means over seeds of every label, and what each differs by from the first one.

    A label's evaluations may be under several protocols; under each protocol the first is that of the first
    seed, and so on, for all labels alike. The interval is the middle 95 % of the mean difference over
    resamples that draw users and, independently, seeds with replacement: it covers other users and other
    runs, not another split. With few seeds it knows little of the spread between runs and is too narrow.
    """
    protocols = list(dict.fromkeys(e.protocol for runs in evaluations.values() for e in runs))
    if not protocols:
        raise ConfigError("A comparison needs at least one evaluation; got none.")
    groups = [_group(evaluations, protocol) for protocol in protocols]
    _check(groups)
    first = next(iter(groups[0].values()))
    return Comparison(
        on=first[0].on,
        k=first[0].k,
        users=len(first[0].users),
        seeds=len(first),
        rows=tuple(row for group in groups for row in _rows(group)),
        differences=tuple(d for group in groups for d in _differences(group, resamples, rng)),
    )


Group = dict[str, list[Evaluation]]  # label -> its evaluations under one protocol, one a seed


def _group(evaluations: Mapping[str, Sequence[Evaluation]], protocol: str) -> Group:
    return {label: [e for e in runs if e.protocol == protocol] for label, runs in evaluations.items()}


def _check(groups: Sequence[Group]) -> None:
    """Raises unless every evaluation has a partner for the same users, seed, part, k and metrics."""
    label, base = next((label, runs[0]) for label, runs in groups[0].items() if runs)
    seeds = len(groups[0][label])
    for other, runs in (pair for group in groups for pair in group.items()):
        protocol = runs[0].protocol if runs else "a protocol of the others"
        if len(runs) != seeds:
            raise _unpaired(label, other, f"{seeds:,} and {len(runs):,} evaluations under {protocol}")
        for run in runs:
            if (run.on, run.k) != (base.on, base.k):
                raise _unpaired(label, other, f"{base.on} at k = {base.k} and {run.on} at k = {run.k}")
            if not np.array_equal(run.users, base.users):
                raise _unpaired(
                    label, other, f"{len(base.users):,} and {len(run.users):,} users, not the same"
                )
    for group in groups:
        metrics = [set(run.per_user) for runs in group.values() for run in runs]
        if any(names != metrics[0] for names in metrics):
            raise ConfigError("Evaluations can be compared only if all of them hold the same metrics.")


def _unpaired(one: str, other: str, what: str) -> ConfigError:
    return ConfigError(
        f"Evaluations can be paired only over the same users, seeds, part and k, but {one!r} and {other!r} "
        f"have {what}; evaluate both in the same way."
    )


def _rows(group: Group) -> list[MetricSummary]:
    """Mean and standard deviation over seeds of every metric, also those of the lists as a whole."""
    rows = []
    for label, runs in group.items():
        means = [run.metrics() for run in runs]
        for metric in means[0]:
            values = np.array([mean[metric] for mean in means])
            sd = float(values.std(ddof=1)) if len(values) > 1 else None
            estimate = mean_and_deviation(float(values.mean()), sd, n=len(values))
            rows.append(MetricSummary(label, runs[0].protocol, metric, estimate, sd))
    return rows


def _differences(group: Group, resamples: int, rng: Rng) -> list[Difference]:
    """Mean and interval of every per-user metric of every label but the first, minus that of the first."""
    baseline, *others = group
    metrics = list(group[baseline][0].per_user)
    if not others:
        return []
    values = {
        label: np.array([[r.per_user[m] for m in metrics] for r in runs]) for label, runs in group.items()
    }
    gaps = np.stack([values[label] - values[baseline] for label in others])  # (labels, seeds, metrics, users)
    protocol = group[baseline][0].protocol
    means = gaps.mean(axis=(1, 3))
    low, high = _interval(gaps, resamples, rng.numpy("compare", protocol))
    n, how = gaps.shape[3], _how(gaps.shape[1], resamples)
    return [
        Difference(
            label,
            baseline,
            protocol,
            metric,
            Estimate(float(means[a, m]), float(low[a, m]), float(high[a, m]), n, how, LEVEL),
        )
        for a, label in enumerate(others)
        for m, metric in enumerate(metrics)
    ]


def _how(seeds: int, resamples: int) -> str:
    """How the intervals are made; from one seed they know nothing of other runs."""
    units = "users and seeds" if seeds > 1 else "users, one seed"
    return f"{100 * LEVEL:.0f} % bootstrap over {units}, {resamples:,} resamples"


def _interval(
    gaps: NDArray[np.float64], resamples: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the middle LEVEL of resampled means (labels, metrics); gaps (labels, seeds, metrics, users)."""
    labels, seeds, metrics, users = gaps.shape
    seed_shares = _resample_counts(resamples, seeds, rng) / seeds
    flat = gaps.reshape(-1, users).T / users
    step = max(1, _COUNTS_AT_ONCE // users)
    by_run = np.concatenate(
        [_resample_counts(min(step, resamples - i), users, rng) @ flat for i in range(0, resamples, step)]
    ).reshape(resamples, labels, seeds, metrics)
    means = np.einsum("rs,rlsm->rlm", seed_shares, by_run)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def _resample_counts(resamples: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """How often each of `size` things is drawn in each of the resamples: (resamples, size)."""
    drawn = rng.integers(size, size=(resamples, size)) + np.arange(resamples)[:, None] * size
    return np.bincount(drawn.ravel(), minlength=resamples * size).reshape(resamples, size).astype(np.float64)
