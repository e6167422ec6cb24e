"""What a run of experiments would take: fits, what is stored, and processor hours by earlier timings."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from towpath.experiments.paper.jobs import Job
from towpath.experiments.paper.run import Plan
from towpath.experiments.result_store import ResultStore
from towpath.experiments.run_result import RunResult

# Processor seconds of one fit with its evaluation on MovieLens 1M, where nothing else is known: from the
# committed pages; of attention and wide and deep from a few epochs.
_ON_A_MILLION: dict[tuple[str, str], float] = {
    ("popularity", "plain"): 3, ("ease", "plain"): 9, ("mf", "plain"): 17, ("mf", "ipw"): 23,
    ("mf", "expomf"): 28, ("mf", "adversarial"): 68, ("mf", "doubly-robust"): 40,
    ("mf", "causal-embedding"): 54, ("mf", "transport"): 48, ("ncf", "plain"): 120, ("ncf", "transport"): 200,
    ("attention", "plain"): 900, ("attention", "transport"): 1_800, ("wide_deep", "plain"): 300,
    ("wide_deep", "ipw"): 300, ("wide_deep", "transport"): 700,
}  # fmt: skip
_UNKNOWN = 300.0  # of a model and a method that the table does not have
# Models as players cost about this much more than the margin.
_MODELS_AS_PLAYERS = 2.3
_EVENTS = 1_000_000


@dataclass
class Timings:
    """Processor seconds of fits: of the same recipe on the same data, or else of its kind, per event."""

    same: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    per_event: dict[tuple[str, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def seconds(self, job: Job, events: int) -> tuple[float, bool]:
        """What a job would take, and whether it was measured for the same recipe on the same data."""
        key = json.loads(job.key.text)
        if (same := self.same.get(_problem(key))) is not None:
            return mean(same), True
        if (kind := self.per_event.get(_kind(key["recipe"]))) is not None:
            return mean(kind) * events, False
        return _guess(key["recipe"]) * events / _EVENTS, False


def read_timings(store: ResultStore, events: Mapping[str, int]) -> Timings:
    """The timings of all stored fits, of whatever code version; `events` are those of data by fingerprint."""
    timings = Timings()
    for key, notes in store.notes(RunResult):
        seconds = notes.get("processor_seconds")
        if seconds is None or key.get("recipe") is None:
            continue
        timings.same[_problem(key)].append(seconds)
        if key["data"] in events:
            timings.per_event[_kind(key["recipe"])].append(seconds / events[key["data"]])
    return timings


def _problem(key: Mapping[str, Any]) -> str:
    """What timings are alike in: data, recipe and evaluation, whatever the seed and the code."""
    recipe = {name: value for name, value in key["recipe"].items() if name != "seed"}
    return json.dumps([key["data"], recipe, key.get("evaluation")], sort_keys=True)


def _kind(recipe: Mapping[str, Any]) -> tuple[str, str, str]:
    return recipe["model"], recipe["method"], recipe["settings"].get("players", "")


def _guess(recipe: Mapping[str, Any]) -> float:
    model, method, players = _kind(recipe)
    known = _ON_A_MILLION.get((model, method), _UNKNOWN)
    return known * (_MODELS_AS_PLAYERS if players == "models" else 1.0)


@dataclass(frozen=True)
class Forecast:
    """What is left to do for one experiment on one data set."""

    experiment: str
    data: str
    fits: int
    stored: int  # finished, well or not
    hours: float  # of one processor, for the fits that are missing
    measured: int  # missing fits whose recipe was timed on these data before; the rest is a guess

    @property
    def missing(self) -> int:
        """How many fits are to be computed."""
        return self.fits - self.stored

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**vars(self), "missing": self.missing}


def forecast(plans: Sequence[Plan], store: ResultStore) -> list[Forecast]:
    """One row for each plan; a fit that several plans share counts where it comes first."""
    facts = {one.name: one for plan in plans for one in plan.record.benchmarks}
    timings = read_timings(store, {one.fingerprint: one.events for one in facts.values()})
    seen: set[str] = set()
    rows = []
    for plan in plans:
        own = _first_of(plan.jobs, seen)
        left = [timings.seconds(job, facts[job.location.name].events) for job in own if job.state is None]
        data = ", ".join(one.name for one in plan.record.benchmarks)
        hours = sum(seconds for seconds, _ in left) / 3600
        measured = sum(known for _, known in left)
        rows.append(Forecast(plan.record.experiment, data, len(own), len(own) - len(left), hours, measured))
    return rows


def _first_of(jobs: Iterable[Job], seen: set[str]) -> list[Job]:
    """The jobs that no earlier plan has; `seen` grows by them."""
    own = {job.name: job for job in jobs if job.name not in seen}
    seen |= set(own)
    return list(own.values())
