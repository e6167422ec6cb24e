"""What a run of experiments would take: fits, what is stored, and processor hours by earlier timings."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from towpath.experiments.paper.jobs import Job
from towpath.experiments.paper.record import folder_name
from towpath.experiments.paper.results import BenchmarkFacts
from towpath.experiments.paper.run import Plan
from towpath.experiments.paper.searches import CANDIDATES, PaperSearch
from towpath.experiments.result_store import ResultStore
from towpath.experiments.run_result import RunResult

# Processor seconds of one fit with its evaluation on MovieLens 1M, where nothing else is known: of
# factorisations from the committed pages, of the others from two epochs on two shared cores, times 12 epochs
# for NCF (pages of simulations have 6 to 10), 40 for attention (its most) and 20 for wide and deep.
_ON_A_MILLION: dict[tuple[str, str], float] = {
    ("popularity", "plain"): 3, ("ease", "plain"): 9, ("mf", "plain"): 20, ("mf", "ipw"): 23,
    ("mf", "expomf"): 28, ("mf", "adversarial"): 68, ("mf", "doubly-robust"): 40,
    ("mf", "causal-embedding"): 54, ("mf", "transport"): 48, ("ncf", "plain"): 90, ("ncf", "transport"): 120,
    ("attention", "plain"): 180, ("attention", "transport"): 240, ("wide_deep", "plain"): 500,
    ("wide_deep", "ipw"): 500, ("wide_deep", "transport"): 900,
}  # fmt: skip
_UNKNOWN = 300.0  # of a model and a method that the table does not have
# Models as players cost about this much more than the margin, and networks as w or g more again.
_MODELS_AS_PLAYERS = 3.0
_NETWORK_AS_PLAYER = 1.7
_EVENTS = 1_000_000
_ALIKE = 3.0  # data of a third to three times as many events are of the same size
SEARCHES = "tune"  # what the rows of searches are called


@dataclass
class Timings:
    """Processor seconds of fits: of the same recipe on the same data, or else of its kind on other data."""

    same: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    # By kind: events of the data, and seconds.
    of_kind: dict[tuple[str, str, str], list[tuple[int, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def seconds(self, job: Job, events: int) -> tuple[float, bool]:
        """What a job would take, and whether it was measured for the same recipe on the same data."""
        key = json.loads(job.key.text)
        if (same := self.same.get(_problem(key))) is not None:
            return mean(same), True
        return self.seconds_of_kind(key["recipe"], events), False

    def seconds_of_kind(self, recipe: Mapping[str, Any], events: int) -> float:
        """What a fit of such a recipe would take, by others of the same model, method and players.

        Those on data of another size say little: a small fit costs more per event.
        """
        known = self.of_kind.get(_kind(recipe), [])
        alike = [seconds / n for n, seconds in known if events / _ALIKE <= n <= events * _ALIKE]
        return events * (mean(alike) if alike else _guess(recipe) / _EVENTS)


def read_timings(store: ResultStore, events: Mapping[str, int]) -> Timings:
    """The timings of all stored fits, of whatever code version; `events` are those of data by fingerprint."""
    timings = Timings()
    for key, notes in store.notes(RunResult):
        seconds = notes.get("processor_seconds")
        if seconds is None or key.get("recipe") is None:
            continue
        timings.same[_problem(key)].append(seconds)
        if key["data"] in events:
            timings.of_kind[_kind(key["recipe"])].append((events[key["data"]], seconds))
    return timings


def _problem(key: Mapping[str, Any]) -> str:
    """What timings are alike in: data, recipe and evaluation, whatever the seed and the code."""
    recipe = {name: value for name, value in key["recipe"].items() if name != "seed"}
    return json.dumps([key["data"], recipe, key.get("evaluation")], sort_keys=True)


def _kind(recipe: Mapping[str, Any]) -> tuple[str, str, str]:
    """Model, method and who plays: what fits of one kind are alike in."""
    settings = recipe["settings"]
    names = ("players", "w", "g", "steps_w", "steps_g", "hard_negatives")
    return recipe["model"], recipe["method"], " ".join(str(settings.get(name, "")) for name in names)


def _guess(recipe: Mapping[str, Any]) -> float:
    model, method, players = recipe["model"], recipe["method"], recipe["settings"].get("players", "")
    known = _ON_A_MILLION.get((model, method), _UNKNOWN)
    if players != "models":
        return known
    settings = recipe["settings"]
    networks = sum(settings[player] not in ("", "mf", model) for player in ("w", "g"))
    # One move of each of the three players is what the figures above are of.
    moves = (1 + settings["steps_w"] + settings["steps_g"]) / 3
    return known * _MODELS_AS_PLAYERS * _NETWORK_AS_PLAYER**networks * moves


@dataclass(frozen=True)
class Forecast:
    """What is left to do for one experiment on one data set."""

    experiment: str
    data: str
    fits: int
    stored: int  # finished, well or not
    hours: float  # of one processor, for the fits that are missing
    measured: int  # missing fits whose recipe was timed on these data before; the rest is a guess
    earlier: int = 0  # stored ones that another version of the code made

    @property
    def folder(self) -> str:
        """The name of its page."""
        return folder_name(self.experiment, [self.data])

    @property
    def missing(self) -> int:
        """How many fits are to be computed."""
        return self.fits - self.stored

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**vars(self), "missing": self.missing}


def forecast(plans: Sequence[Plan], store: ResultStore) -> list[Forecast]:
    """One row for each plan; a fit that several plans share counts where it comes first."""
    facts = _facts(plans)
    timings = read_timings(store, {one.fingerprint: one.events for one in facts.values()})
    seen: set[str] = set()
    rows = []
    for plan in plans:
        own = _first_of(plan.jobs, seen)
        left = [timings.seconds(job, facts[job.location.name].events) for job in own if job.state is None]
        data = ", ".join(one.name for one in plan.record.benchmarks)
        hours = sum(seconds for seconds, _ in left) / 3600
        measured = sum(known for _, known in left)
        earlier = sum(job.state is not None and job.code != store.code for job in own)
        stored = len(own) - len(left)
        rows.append(Forecast(plan.record.experiment, data, len(own), stored, hours, measured, earlier))
    return rows


def forecast_searches(
    searches: Sequence[PaperSearch], plans: Sequence[Plan], store: ResultStore
) -> list[Forecast]:
    """One row for the searches on each data set."""
    facts = _facts(plans)
    timings = read_timings(store, {one.fingerprint: one.events for one in facts.values()})
    names = dict.fromkeys(one.location.name for one in searches)
    return [_of_searches(name, searches, timings, facts[name].events) for name in names]


def _facts(plans: Iterable[Plan]) -> dict[str, BenchmarkFacts]:
    return {one.name: one for plan in plans for one in plan.record.benchmarks}


def _of_searches(name: str, searches: Iterable[PaperSearch], timings: Timings, events: int) -> Forecast:
    """The searches on one data set: an unfinished one counts whole, since its fits differ in settings."""
    own = [one for one in searches if one.location.name == name]
    left = [one for one in own if not one.finished]
    seconds = sum(timings.seconds_of_kind(one.recipe.resolved(), events) for one in left)
    fits, hours = CANDIDATES * len(own), CANDIDATES * seconds / 3600
    return Forecast(SEARCHES, name, fits, fits - CANDIDATES * len(left), hours, 0)


def _first_of(jobs: Iterable[Job], seen: set[str]) -> list[Job]:
    """The jobs that no earlier plan has; `seen` grows by them."""
    own = {job.name: job for job in jobs if job.name not in seen}
    seen |= set(own)
    return list(own.values())
