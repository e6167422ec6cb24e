"""What the paper claims, and whether it holds here: read off intervals, never off the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy import stats

from towpath.evaluation.comparison import LEVEL
from towpath.experiments.paper.published import printed, printed_difference
from towpath.experiments.paper.results import BenchmarkResults, Measure
from towpath.experiments.paper.weights import STATISTICS

Outcome = Literal["held", "held in part", "mixed", "undecided", "did not hold", "not tested"]


@dataclass(frozen=True)
class Estimate:
    """A number with the interval in which it is believed to lie."""

    mean: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 if the whole interval is above zero, -1 if it is below, 0 if zero is in it."""
        return int(self.low > 0) - int(self.high < 0)

    def __str__(self) -> str:
        """The number with its sign, and the interval; small ones with a location more.

        >>> str(Estimate(0.5, -0.25, 1.25)), str(Estimate(0.004, 0.001, 0.007))
        ('+0.50 (-0.25 to +1.25)', '+0.004 (+0.001 to +0.007)')
        """
        places = 2 if max(abs(self.low), abs(self.high)) >= 0.1 else 3
        mean, low, high = (f"{part:+.{places}f}" for part in (self.mean, self.low, self.high))
        return f"{mean} ({low} to {high})"


@dataclass(frozen=True)
class Verdict:
    """Whether a claim held in one benchmark, and what says so."""

    claim: str
    benchmark: str
    outcome: Outcome
    evidence: str

    @property
    def sentence(self) -> str:
        """The claim, what became of it, and the numbers."""
        return f"{self.claim} — {self.outcome} on {self.benchmark}: {self.evidence}"


class Claim(Protocol):
    """Something that the paper says of its results."""

    def assess(self, found: BenchmarkResults) -> Verdict | None:
        """Whether it holds in this benchmark; None where it does not speak of it or cannot be evaluated."""


def outcome_of(signs: Sequence[int]) -> Outcome:
    """What several estimates say of one claim, each of them 1 for it, -1 against it, 0 for neither.

    >>> outcome_of([1, 1]), outcome_of([1, 0]), outcome_of([1, -1]), outcome_of([0, 0]), outcome_of([0, -1])
    ('held', 'held in part', 'mixed', 'undecided', 'did not hold')
    """
    if not signs:
        return "not tested"
    if min(signs) > 0:
        return "held"
    if max(signs) > 0:
        return "mixed" if min(signs) < 0 else "held in part"
    return "did not hold" if min(signs) < 0 else "undecided"


@dataclass(frozen=True)
class Better:
    """One method is above another on every measure that the paper prints."""

    better: str
    worse: str
    because: str = ""  # what the paper says about it, if it is not this

    def assess(self, found: BenchmarkResults) -> Verdict | None:
        """By the paired difference under each measure."""
        if not found.common_seeds([self.better, self.worse]):
            return None
        measures = found.facts.measures(found.k)
        gaps = [_difference(found, self.better, self.worse, measure) for measure in measures]
        claim = self.because or f"{self.better} is better than {self.worse}"
        pair = (self.better, self.worse)
        evidence = f"{_evidence(measures, gaps)}{_seeds(found, pair)}{_printed(found, pair, measures)}"
        return Verdict(claim, found.facts.title, _outcome(found, pair, gaps), evidence)


@dataclass(frozen=True)
class BestIsTransport:
    """The best of the methods is one of the paper's; rivals are those that the paper prints, if it does."""

    mark: str = "DT-"

    def assess(self, found: BenchmarkResults) -> Verdict | None:
        """By the paired difference between the best of the paper's methods and the best of the others."""
        ours = [column for column in found.columns if column.startswith(self.mark)]
        others = [column for column in found.columns if not column.startswith(self.mark)]
        benchmark = found.facts.published_as
        others = [column for column in others if printed(benchmark, column, "hit") is not None] or others
        if not ours or not others:
            return None
        gaps, said = [], []
        for measure in found.facts.measures(found.k):
            best, rival = (max(group, key=lambda c: found.mean(c, measure)[0]) for group in (ours, others))
            gaps.append(_difference(found, best, rival, measure))
            said.append(f"{measure.heading} {best} against {rival} {gaps[-1]}")
        claim = "The best of all methods, on every measure, is one of the proposed ones"
        everyone = (*ours, *others)
        evidence = f"{'; '.join(said)}.{_seeds(found, everyone)}"
        return Verdict(claim, found.facts.title, _outcome(found, everyone, gaps), evidence)


@dataclass(frozen=True)
class _OfRow:
    """A claim about columns in a row; there is nothing to evaluate where fewer than two of them are."""

    claim: str
    columns: tuple[str, ...]

    def there(self, found: BenchmarkResults) -> list[str]:
        """Those that were asked for."""
        there = [column for column in self.columns if column in found.columns]
        return there if len(there) > 1 else []


class Rises(_OfRow):
    """More of something is better: the last column of a row is above its first."""

    def assess(self, found: BenchmarkResults) -> Verdict | None:
        """By the paired difference between the two ends."""
        there = self.there(found)
        if not there:
            return None
        measures = found.facts.measures(found.k)
        gaps = [_difference(found, there[-1], there[0], measure) for measure in measures]
        evidence = f"from {there[0]} to {there[-1]}: {_evidence(measures, gaps)}{_seeds(found, there)}"
        return Verdict(self.claim, found.facts.title, _outcome(found, there, gaps), evidence)


class Steady(_OfRow):
    """A setting matters little: no column of a row differs from its middle one."""

    def assess(self, found: BenchmarkResults) -> Verdict | None:
        """Held under a measure if no difference is certain; the smallest detectable one is given too."""
        there = self.there(found)
        if not there:
            return None
        middle = there[len(there) // 2]
        signs, said = [], []
        for measure in found.facts.measures(found.k):
            gaps = {c: _difference(found, c, middle, measure) for c in there if c != middle}
            means = [found.mean(column, measure)[0] for column in there]
            certain = [f"{column} {gap}" for column, gap in gaps.items() if gap.sign]
            signs.append(-1 if certain else 1)
            apart = f"; status apart from {middle}: {', '.join(certain)}" if certain else ""
            width = max((gap.high - gap.low) / 2 for gap in gaps.values())
            said.append(
                f"{measure.heading} from {min(means):.2f} to {max(means):.2f}, status to ±{width:.2f}{apart}"
            )
        outcome = outcome_of(signs) if len(found.common_seeds(there)) > 1 else "not tested"
        evidence = f"{'; '.join(said)}.{_seeds(found, there)}"
        return Verdict(self.claim, found.facts.title, outcome, evidence)


@dataclass(frozen=True)
class WeightsAre:
    """Something about the learned weights, as a number that is above zero if it is so.

    With `within` the claim is that there is nothing to see: the number is no further than this from zero.
    """

    claim: str
    column: str
    statistic: str  # of STATISTICS
    within: float | None = None

    def assess(self, found: BenchmarkResults) -> Verdict | None:
        """By the mean over seeds and its t-interval."""
        kept = found.pairs(self.column) if self.column in found.columns else []
        status = [STATISTICS[self.statistic](pairs) for pairs in kept]
        values = [value for value in status if value is not None]
        if not values:
            return None
        claim = f"{self.column}: {self.claim}"
        if len(values) < 2:
            only = f"one seed says {values[0]:+.3f}, and nothing of how much seeds differ."
            return Verdict(claim, found.facts.title, "not tested", only)
        estimate = over_seeds(values)
        meaning = (STATISTICS[self.statistic].__doc__ or "").strip().rstrip(".")
        limit = "" if self.within is None else f" (nothing means within ±{self.within:g})"
        evidence = f"{meaning[:1].lower()}{meaning[1:]} is {estimate}{limit}, {len(values)} seeds."
        return Verdict(claim, found.facts.title, self._outcome(estimate), evidence)

    def _outcome(self, estimate: Estimate) -> Outcome:
        if self.within is None:
            return outcome_of([estimate.sign])
        if -self.within <= estimate.low and estimate.high <= self.within:
            return "held"
        beyond = estimate.low > self.within or estimate.high < -self.within
        return "did not hold" if beyond else "undecided"


@dataclass(frozen=True)
class CatchesUp:
    """A method gets to where another ends sooner, in seconds of training."""

    faster: str
    slower: str

    def assess(self, found: BenchmarkResults) -> Verdict | None:
        """By the seconds until the other's best validation Hit@10 is reached, seed by seed."""
        seeds = found.common_seeds([self.faster, self.slower])
        if not seeds:
            return None
        claim = f"{self.faster} reaches what {self.slower} reaches at best in less training time"
        times = [
            (_seconds_to(found, self.slower, s), _seconds_to(found, self.faster, s, self.slower))
            for s in seeds
        ]
        reached = [(slow, fast) for slow, fast in times if slow is not None and fast is not None]
        missed = (
            f"{len(times) - len(reached)} of {len(times)} seeds never get there" if reached != times else ""
        )
        if len(reached) < 2:
            why = missed or "one seed has no spread"
            return Verdict(claim, found.facts.title, "did not hold" if missed else "not tested", f"{why}.")
        saved = over_seeds([slow - fast for slow, fast in reached])
        outcome = outcome_of([saved.sign, -1] if missed else [saved.sign])
        evidence = f"seconds saved {saved}, {len(reached)} seeds{'; ' if missed else ''}{missed}."
        return Verdict(claim, found.facts.title, outcome, evidence)


def _seconds_to(found: BenchmarkResults, column: str, seed: int, other: str = "") -> float | None:
    """Training seconds until the best validation Hit@10 of the other column (or of this one) is reached."""
    target = max(row["validation_hit"] for row in found.done(other or column, seed).history)
    spent = 0.0
    for row in found.done(column, seed).history:
        spent += row["seconds"]
        if row["validation_hit"] >= target:
            return spent
    return None


def over_seeds(values: Sequence[float]) -> Estimate:
    """The mean with its t-interval."""
    mean, n = float(np.mean(values)), len(values)
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1) * np.std(values, ddof=1) / n**0.5)
    return Estimate(mean, mean - half, mean + half)


def _difference(found: BenchmarkResults, a: str, b: str, measure: Measure) -> Estimate:
    gap = found.difference(a, b, measure)
    return Estimate(gap.mean, gap.low, gap.high)


def _outcome(found: BenchmarkResults, columns: Sequence[str], gaps: Sequence[Estimate]) -> Outcome:
    """What the differences say; from one seed they say nothing of another run."""
    return outcome_of([gap.sign for gap in gaps]) if len(found.common_seeds(columns)) > 1 else "not tested"


def _seeds(found: BenchmarkResults, columns: Sequence[str]) -> str:
    seeds = len(found.common_seeds(columns))
    return " One seed, so nothing is known of other runs." if seeds == 1 else f" {seeds} seeds."


def _evidence(measures: Sequence[Measure], gaps: Sequence[Estimate]) -> str:
    said = (f"{measure.heading} {gap}" for measure, gap in zip(measures, gaps, strict=True))
    return f"{', '.join(said)}."


def _printed(found: BenchmarkResults, pair: tuple[str, str], measures: Sequence[Measure]) -> str:
    gaps = [printed_difference(found.facts.published_as, pair, measure.printed) for measure in measures]
    known = [f"{gap:+.2f}" for gap in gaps if gap is not None]
    return f" The paper prints {', '.join(known)}." if known else ""
