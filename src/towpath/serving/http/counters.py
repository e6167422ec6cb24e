"""What /metrics shows: counts and durations of one worker, added up over all of them."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isinf
from statistics import fmean
from typing import Any

# Upper ends of the buckets of durations, in seconds.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


@dataclass
class Counters:
    """Counts of one worker since it started."""

    requests: dict[str, int] = field(default_factory=dict)  # "endpoint status" -> how many
    answers: dict[str, int] = field(default_factory=dict)  # "arm version" -> how many
    durations: dict[str, list[float]] = field(default_factory=dict)  # endpoint -> buckets, then sum
    outcomes: dict[str, int] = field(default_factory=dict)  # kind -> how many were sent, duplicates too
    users: dict[str, int] = field(default_factory=dict)  # arm -> users, each once for every worker
    evidence: float = 1.0  # e-value against the configured split of the users
    waiting: int = 0
    generation: int = 0  # how many swaps this worker has made

    def count(self, endpoint: str, status: int, seconds: float) -> None:
        """One request that was answered."""
        key = f"{endpoint} {status}"
        self.requests[key] = self.requests.get(key, 0) + 1
        buckets = self.durations.get(endpoint)
        if buckets is None:
            buckets = self.durations[endpoint] = [0.0] * (len(BUCKETS) + 2)
        buckets[bisect_left(BUCKETS, seconds)] += 1
        buckets[-1] += seconds

    def count_answer(self, arm: str, version: str) -> None:
        """One slate that an arm has shown."""
        key = f"{arm} {version}"
        self.answers[key] = self.answers.get(key, 0) + 1

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The same for another worker."""
        return vars(self)


def added(all_counters: Iterable[Counters]) -> Counters:
    """The sums over workers; the mean evidence; the swaps of the one that has made the fewest."""
    several = list(all_counters)
    total = Counters(
        evidence=fmean([one.evidence for one in several] or [1.0]),
        generation=min((one.generation for one in several), default=0),
    )
    for one in several:
        for name in ("requests", "answers", "outcomes", "users"):
            into = getattr(total, name)
            for key, count in getattr(one, name).items():
                into[key] = into.get(key, 0) + count
        for endpoint, buckets in one.durations.items():
            before = total.durations.get(endpoint, [0.0] * len(buckets))
            total.durations[endpoint] = [a + b for a, b in zip(before, buckets, strict=True)]
        total.waiting += one.waiting
    return total


def to_prometheus(total: Counters, workers: int) -> str:
    """The text format of Prometheus."""
    lines = ["# TYPE towpath_requests_total counter"]
    for key, count in sorted(total.requests.items()):
        endpoint, status = key.rsplit(" ", 1)
        lines.append(f'towpath_requests_total{{endpoint="{endpoint}",status="{status}"}} {count}')
    lines.append("# TYPE towpath_answers_total counter")
    for key, count in sorted(total.answers.items()):
        arm, version = key.rsplit(" ", 1)
        lines.append(f'towpath_answers_total{{arm="{_quoted(arm)}",model_version="{version}"}} {count}')
    lines.append("# TYPE towpath_outcomes_total counter")
    lines += [f'towpath_outcomes_total{{kind="{k}"}} {n}' for k, n in sorted(total.outcomes.items())]
    lines.append("# TYPE towpath_request_seconds histogram")
    for endpoint, buckets in sorted(total.durations.items()):
        lines += _histogram(endpoint, buckets)
    lines.append("# TYPE towpath_split_users gauge")
    lines += [f'towpath_split_users{{arm="{_quoted(arm)}"}} {n}' for arm, n in total.users.items()]
    evidence = "+Inf" if isinf(total.evidence) else f"{total.evidence:.6g}"
    lines += ["# TYPE towpath_split_evidence gauge", f"towpath_split_evidence {evidence}"]
    lines += ["# TYPE towpath_log_waiting gauge", f"towpath_log_waiting {total.waiting}"]
    lines += ["# TYPE towpath_workers gauge", f"towpath_workers {workers}"]
    return "\n".join(lines) + "\n"


def _histogram(endpoint: str, buckets: list[float]) -> list[str]:
    lines, so_far = [], 0
    for end, count in zip((*map(str, BUCKETS), "+Inf"), buckets[:-1], strict=True):
        so_far += int(count)
        lines.append(f'towpath_request_seconds_bucket{{endpoint="{endpoint}",le="{end}"}} {so_far}')
    lines.append(f'towpath_request_seconds_sum{{endpoint="{endpoint}"}} {buckets[-1]:.6f}')
    return [*lines, f'towpath_request_seconds_count{{endpoint="{endpoint}"}} {so_far}']


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
