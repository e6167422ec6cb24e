"""What the paper claims, and whether it holds here: decided by our intervals alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from towpath.experiments.paper.published import published_difference, published_value
from towpath.experiments.paper.results import BenchmarkResults, Measure
from towpath.experiments.paper.weights import STATISTICS
from towpath.stats.estimate import Estimate
from towpath.stats.spread import t_interval

Outcome = Literal["held", "held in part", "mixed", "undecided", "did not hold", "not tested"]


@dataclass(frozen=True)
class Verdict:
    """Whether a claim held on one benchmark, and the numbers that decide it."""

    claim: str
    benchmark: str
    outcome: Outcome
    evidence: str

    @property
    def sentence(self) -> str:
        """The claim, whether it held, and the numbers."""
        return f"{self.claim} — {self.outcome} on {self.benchmark}: {self.evidence}"


class Claim(Protocol):
    """A statement of the paper about its results."""

    @property
    def statement(self) -> str:
        """What is claimed, in one sentence without its end."""

    def assess(self, results: BenchmarkResults) -> Verdict | None:
        """Whether it holds on this benchmark; None where it is about others or cannot be evaluated."""


def outcome_of(signs: Sequence[int]) -> Outcome:
    """The outcome of a claim, given for each estimate 1 (for it), -1 (against it) or 0 (undecided).

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
    """One method is above another on every measure that the paper publishes."""

    better: str
    worse: str
    because: str = ""  # the paper's own statement, if it is another

    @property
    def statement(self) -> str:
        """Which is better than which."""
        return self.because or f"{self.better} is better than {self.worse}"

    def assess(self, results: BenchmarkResults) -> Verdict | None:
        """By the paired difference under each measure."""
        if not results.common_seeds([self.better, self.worse]):
            return None
        measures = results.facts.measures(results.k)
        gaps = [results.difference(self.better, self.worse, measure) for measure in measures]
        pair = (self.better, self.worse)
        evidence = f"{_evidence(measures, gaps)}{_seeds(results, pair)}{_published(results, pair, measures)}"
        return Verdict(self.statement, results.facts.title, _outcome(results, pair, gaps), evidence)


@dataclass(frozen=True)
class BestIsTransport:
    """The best method is one of the paper's; the others are those that the paper publishes numbers of."""

    mark: str = "DT-"

    @property
    def statement(self) -> str:
        """The same for all tables."""
        return "The best of all methods, on every measure, is one of the proposed ones"

    def assess(self, results: BenchmarkResults) -> Verdict | None:
        """By the paired difference between the best of the paper's methods and the best of the others."""
        ours = [column for column in results.columns if column.startswith(self.mark)]
        others = [column for column in results.columns if not column.startswith(self.mark)]
        benchmark = results.facts.published_as
        others = [
            column for column in others if published_value(benchmark, column, "hit") is not None
        ] or others
        if not ours or not others:
            return None
        gaps, texts = [], []
        for measure in results.facts.measures(results.k):
            best, rival = (
                max(group, key=lambda c: results.mean(c, measure).mean) for group in (ours, others)
            )
            gaps.append(results.difference(best, rival, measure))
            texts.append(f"{measure.heading} {best} against {rival} {signed(gaps[-1])}")
        everyone = (*ours, *others)
        evidence = f"{'; '.join(texts)}.{_seeds(results, everyone)}"
        return Verdict(self.statement, results.facts.title, _outcome(results, everyone, gaps), evidence)


@dataclass(frozen=True)
class _OfRow:
    """A claim about the columns of a sweep; not evaluated where fewer than two of them are finished."""

    claim: str
    columns: tuple[str, ...]

    @property
    def statement(self) -> str:
        """As it was declared."""
        return self.claim

    def there(self, results: BenchmarkResults) -> list[str]:
        """Those that are finished."""
        there = [column for column in self.columns if column in results.columns]
        return there if len(there) > 1 else []


class Rises(_OfRow):
    """More of something is better: the last column of a sweep is above its first."""

    def assess(self, results: BenchmarkResults) -> Verdict | None:
        """By the paired difference between the two ends."""
        there = self.there(results)
        if not there:
            return None
        measures = results.facts.measures(results.k)
        gaps = [results.difference(there[-1], there[0], measure) for measure in measures]
        evidence = f"from {there[0]} to {there[-1]}: {_evidence(measures, gaps)}{_seeds(results, there)}"
        return Verdict(self.claim, results.facts.title, _outcome(results, there, gaps), evidence)


class Steady(_OfRow):
    """A setting matters little: no column of a sweep differs from its middle one."""

    def assess(self, results: BenchmarkResults) -> Verdict | None:
        """Held under a measure if no difference is certain; the smallest detectable one is given too."""
        there = self.there(results)
        if not there:
            return None
        middle = there[len(there) // 2]
        signs, texts = [], []
        for measure in results.facts.measures(results.k):
            gaps = {c: results.difference(c, middle, measure) for c in there if c != middle}
            means = [results.mean(column, measure).mean for column in there]
            certain = [f"{column} {signed(gap)}" for column, gap in gaps.items() if sign_of(gap)]
            signs.append(-1 if certain else 1)
            differ = f"; different from {middle}: {', '.join(certain)}" if certain else ""
            half = max(gap.width / 2 for gap in gaps.values())
            texts.append(
                f"{measure.heading} from {min(means):.2f} to {max(means):.2f}, known to ±{half:.2f}{differ}"
            )
        outcome = outcome_of(signs) if len(results.common_seeds(there)) > 1 else "not tested"
        evidence = f"{'; '.join(texts)}.{_seeds(results, there)}"
        return Verdict(self.claim, results.facts.title, outcome, evidence)


@dataclass(frozen=True)
class WeightsAre:
    """A statistic of the learned weights is above zero.

    With `within` the claim is that it is about zero: no further from it than this.
    """

    claim: str
    column: str
    statistic: str  # of STATISTICS
    within: float | None = None

    @property
    def statement(self) -> str:
        """The column and what is said about its weights."""
        return f"{self.column}: {self.claim}"

    def assess(self, results: BenchmarkResults) -> Verdict | None:
        """By the mean over seeds and its t-interval."""
        runs = results.pairs(self.column) if self.column in results.columns else []
        statistics = [STATISTICS[self.statistic](pairs) for pairs in runs]
        values = [value for value in statistics if value is not None]
        if not values:
            return None
        if len(values) < 2:
            only = f"{values[0]:+.3f} from one seed; how much seeds differ is not known."
            return Verdict(self.statement, results.facts.title, "not tested", only)
        estimate = t_interval(values)
        meaning = (STATISTICS[self.statistic].__doc__ or "").strip().rstrip(".")
        limit = "" if self.within is None else f" (about zero means within ±{self.within:g})"
        evidence = f"{meaning[:1].lower()}{meaning[1:]} is {signed(estimate)}{limit}, {len(values)} seeds."
        return Verdict(self.statement, results.facts.title, self._outcome(estimate), evidence)

    def _outcome(self, estimate: Estimate) -> Outcome:
        if self.within is None:
            return outcome_of([sign_of(estimate)])
        if -self.within <= estimate.low and estimate.high <= self.within:
            return "held"
        beyond = estimate.low > self.within or estimate.high < -self.within
        return "did not hold" if beyond else "undecided"


@dataclass(frozen=True)
class CatchesUp:
    """A method reaches the best validation metric of another in less training time."""

    faster: str
    slower: str

    @property
    def statement(self) -> str:
        """Which catches up with which."""
        return f"{self.faster} reaches what {self.slower} reaches at best in less training time"

    def assess(self, results: BenchmarkResults) -> Verdict | None:
        """By the seconds until the other's best validation Hit@10 is reached, seed by seed."""
        seeds = results.common_seeds([self.faster, self.slower])
        if not seeds:
            return None
        times = [
            (_seconds_to(results, self.slower, s), _seconds_to(results, self.faster, s, self.slower))
            for s in seeds
        ]
        reached = [(slow, fast) for slow, fast in times if slow is not None and fast is not None]
        missed = (
            f"{len(times) - len(reached)} of {len(times)} seeds never reach it" if reached != times else ""
        )
        if len(reached) < 2:
            why = missed or "there is one seed only"
            return Verdict(
                self.statement, results.facts.title, "did not hold" if missed else "not tested", f"{why}."
            )
        saved = t_interval([slow - fast for slow, fast in reached])
        outcome = outcome_of([sign_of(saved), -1] if missed else [sign_of(saved)])
        evidence = f"seconds saved {signed(saved)}, {len(reached)} seeds{'; ' if missed else ''}{missed}."
        return Verdict(self.statement, results.facts.title, outcome, evidence)


def _seconds_to(results: BenchmarkResults, column: str, seed: int, other: str = "") -> float | None:
    """Training seconds until the best validation Hit@10 of the other column (or of this one) is reached."""
    target = max(row["validation_hit"] for row in results.run(other or column, seed).history)
    spent = 0.0
    for row in results.run(column, seed).history:
        spent += row["seconds"]
        if row["validation_hit"] >= target:
            return spent
    return None


def sign_of(estimate: Estimate) -> int:
    """1 if the whole interval is above zero, -1 if it is below, 0 if zero is in it."""
    return int(estimate.low > 0) - int(estimate.high < 0)


def signed(estimate: Estimate) -> str:
    """The number with its sign, and the interval; small ones with one more decimal.

    >>> signed(Estimate(0.5, -0.25, 1.25, 9, "")), signed(Estimate(0.004, 0.001, 0.007, 9, ""))
    ('+0.50 (-0.25 to +1.25)', '+0.004 (+0.001 to +0.007)')
    """
    decimals = 2 if max(abs(estimate.low), abs(estimate.high)) >= 0.1 else 3
    mean, low, high = (f"{part:+.{decimals}f}" for part in (estimate.mean, estimate.low, estimate.high))
    return f"{mean} ({low} to {high})"


def _outcome(results: BenchmarkResults, columns: Sequence[str], gaps: Sequence[Estimate]) -> Outcome:
    """The outcome of paired differences; one seed says nothing about other runs."""
    several = len(results.common_seeds(columns)) > 1
    return outcome_of([sign_of(gap) for gap in gaps]) if several else "not tested"


def _seeds(results: BenchmarkResults, columns: Sequence[str]) -> str:
    seeds = len(results.common_seeds(columns))
    return " One seed, so nothing is known of other runs." if seeds == 1 else f" {seeds} seeds."


def _evidence(measures: Sequence[Measure], gaps: Sequence[Estimate]) -> str:
    texts = (f"{measure.heading} {signed(gap)}" for measure, gap in zip(measures, gaps, strict=True))
    return f"{', '.join(texts)}."


def _published(results: BenchmarkResults, pair: tuple[str, str], measures: Sequence[Measure]) -> str:
    gaps = [published_difference(results.facts.published_as, pair, m.published) for m in measures]
    known = [f"{gap:+.2f}" for gap in gaps if gap is not None]
    return f" The paper has {', '.join(known)}." if known else ""
