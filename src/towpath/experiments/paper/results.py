"""The results on one benchmark: means over seeds and paired differences, straight from the stored runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from towpath.evaluation.comparison import Comparison, compare
from towpath.evaluation.result import Evaluation
from towpath.experiments.paper.weights import StoredPairs
from towpath.experiments.run_result import RunResult
from towpath.rng import Rng
from towpath.stats.estimate import Estimate
from towpath.stats.spread import over_seeds, scaled

_COMPARED = ("hit", "ndcg", "recall", "rel", "weighted_hit")


@dataclass(frozen=True)
class Measure:
    """A number of a table: a metric under a protocol, and the name under which the paper publishes it."""

    name: str
    protocol: str
    metric: str
    scale: float = 100.0
    published: str = ""

    @property
    def heading(self) -> str:
        """The name with its protocol, which is part of every number."""
        return f"{self.name} ({self.protocol})"


@dataclass(frozen=True)
class BenchmarkFacts:
    """Size, title and notes of a benchmark."""

    name: str
    title: str
    notes: tuple[str, ...]
    fingerprint: str
    users: int
    items: int
    events: int
    judged_users: int
    best: float | None = None  # true relevance of the best possible lists, where it is known
    stands_for: str = ""  # the paper's benchmark, where it is another

    @property
    def published_as(self) -> str:
        """The benchmark under which the paper publishes its numbers."""
        return self.stands_for or self.name

    def measures(self, k: int) -> tuple[Measure, ...]:
        """The three that the paper publishes: relevance under full ranking, Hit and NDCG under its own."""
        rel = Measure(f"Rel@{k}", "full", "rel", 100.0 if self.best is None else 1.0, "rel")
        others = (("Hit", "hit"), ("NDCG", "ndcg"))
        return (rel, *(Measure(f"{n}@{k}", "paper", m, published=m) for n, m in others))

    def further(self, k: int) -> tuple[Measure, ...]:
        """The same under protocols that hide what a user has seen."""
        full, sampled = ("full", "sampled")
        names = (("Hit", "hit"), ("NDCG", "ndcg"))
        measures = [Measure(f"{n}@{k}", p, m) for p in (full, sampled) for n, m in names]
        if self.best is not None:
            measures.append(Measure(f"Hit@{k} × relevance", full, "weighted_hit"))
        return tuple(measures)


@dataclass
class BenchmarkResults:
    """The runs of an experiment on one benchmark, as far as they are finished.

    A column that does not depend on the seed has one run, which stands for every seed.
    """

    facts: BenchmarkFacts
    k: int
    seeds: tuple[int, ...]
    runs: Mapping[tuple[str, int], RunResult]
    settings: Mapping[str, Mapping[str, Any]]  # column -> its recipe as it was resolved; any JSON
    stored_pairs: Mapping[tuple[str, int], Callable[[], StoredPairs | None]] = field(default_factory=dict)
    failures: Mapping[tuple[str, int], str] = field(default_factory=dict)
    once: frozenset[str] = frozenset()  # columns that do not depend on the seed
    _known: dict[tuple[str, str], dict[tuple[str, str], Estimate]] = field(default_factory=dict, repr=False)

    @property
    def columns(self) -> list[str]:
        """Those that have at least one finished run, in order."""
        return [column for column in self.settings if self.seeds_of(column)]

    def seeds_of(self, column: str) -> list[int]:
        """The seeds that are finished."""
        own = [seed for seed in self.seeds if (column, seed) in self.runs]
        return list(self.seeds) if own and column in self.once else own

    def run(self, column: str, seed: int) -> RunResult:
        """The run of this column and seed."""
        return self.runs[column, self.seeds[0] if column in self.once else seed]

    def values(self, column: str, measure: Measure) -> list[float]:
        """The mean over users of each finished run, in the order of the seeds."""
        own = self.seeds_of(column)[:1] if column in self.once else self.seeds_of(column)
        metrics = [self._evaluation(column, seed, measure.protocol).metrics() for seed in own]
        return [measure.scale * one[measure.metric] for one in metrics]

    def mean(self, column: str, measure: Measure) -> Estimate:
        """Mean ± standard deviation over seeds."""
        return over_seeds(self.values(column, measure))

    def difference(self, a: str, b: str, measure: Measure) -> Estimate:
        """How much higher `a` is than `b`, paired by user and seed, in the measure's own scale."""
        if (a, b) not in self._known:
            differences = self.comparison([b, a]).differences
            self._known[a, b] = {(d.protocol, d.metric): d.estimate for d in differences}
        return scaled(self._known[a, b][measure.protocol, measure.metric], measure.scale)

    def common_seeds(self, columns: Sequence[str]) -> list[int]:
        """The seeds that all of these columns have finished."""
        return [seed for seed in self.seeds if all(seed in self.seeds_of(column) for column in columns)]

    def comparison(self, columns: Sequence[str]) -> Comparison:
        """These columns over the seeds that all have finished; differences are to the first."""
        seeds = self.common_seeds(columns)
        runs = {c: [_narrow(e) for s in seeds for e in self.run(c, s).evaluations] for c in columns}
        return compare(runs, rng=Rng(0))

    def pairs(self, column: str) -> list[StoredPairs]:
        """The weighed pairs of every finished seed of a column."""
        own = [(column, seed) for seed in self.seeds_of(column)]
        pairs = [self.stored_pairs[key]() for key in own if key in self.stored_pairs]
        return [one for one in pairs if one is not None]

    def processor_seconds(self, column: str) -> float:
        """What one fit of the column took, evaluation included, on average."""
        own = [run.processor_seconds or 0.0 for (name, _), run in self.runs.items() if name == column]
        return float(np.mean(own))

    def epochs(self, column: str) -> float:
        """Epochs of one fit of the column, on average."""
        return float(np.mean([run.epochs for (name, _), run in self.runs.items() if name == column]))

    def _evaluation(self, column: str, seed: int, protocol: str) -> Evaluation:
        return next(e for e in self.run(column, seed).evaluations if e.protocol == protocol)


def _narrow(evaluated: Evaluation) -> Evaluation:
    """The same with the metrics that are compared: resampling the others would cost time for nothing."""
    return replace(evaluated, per_user={m: v for m, v in evaluated.per_user.items() if m in _COMPARED})
