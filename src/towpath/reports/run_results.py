"""How good a run is: metrics with intervals under named protocols, and what it differs by from others."""

from towpath.evaluation.comparison import Difference
from towpath.reports.figures import Dot, Figure, draw_dots
from towpath.reports.intervals import mean_interval
from towpath.reports.page import Section
from towpath.reports.run_facts import THIS, EvaluatedRun
from towpath.reports.tables import Cell, Interval, Table

_METRICS = {"hit": "Hit", "ndcg": "NDCG", "recall": "Recall", "mrr": "MRR"}
_PROTOCOLS = {
    "full": "ranked against the whole catalogue, what the user has seen left out",
    "sampled": "ranked against 100 random items that the user never took, so higher the larger the catalogue",
    "paper": "ranked against 100 random ids drawn as in the paper",
}


def results_section(evaluated: EvaluatedRun) -> Section:
    """The test part's answer."""
    users = len(evaluated.of(THIS, evaluated.protocols()[0]).users)
    what = (
        f"The events of the test part were never looked at in training. For each of {users:,} users the "
        f"model makes a list of {evaluated.k}. Hit@{evaluated.k} is the share of users with at least one of "
        f"their test items in it; NDCG@{evaluated.k} and MRR@{evaluated.k} are higher the nearer "
        "to the top it stands. A number means nothing without its protocol: what the test item was ranked "
        "against."
    )
    tables = [_metrics_table(evaluated, protocol) for protocol in evaluated.protocols()]
    if evaluated.differences:
        tables.append(difference_table(evaluated))
    return Section("How good it is", (what,), tuple(tables), (_figure(evaluated),))


def metric_names(evaluated: EvaluatedRun) -> dict[str, str]:
    """The metrics to show; recall says no more than hit where everyone has one test item."""
    found = evaluated.of(THIS, evaluated.protocols()[0]).per_user
    same = bool((found["recall"] == found["hit"]).all())
    return {name: shown for name, shown in _METRICS.items() if not (same and name == "recall")}


def _metrics_table(evaluated: EvaluatedRun, protocol: str) -> Table:
    """One row for each of whom, times 100."""
    names = metric_names(evaluated)
    rows: list[tuple[Cell, ...]] = [
        (who, *(mean_interval(evaluated.of(who, protocol).per_user[name], 100) for name in names))
        for who in evaluated.evaluations
    ]
    columns = (protocol, *(f"{shown}@{evaluated.k}" for shown in names.values()))
    caption = f"Protocol {protocol}: {_PROTOCOLS[protocol]}. In %, with 95 % intervals over users."
    return Table(columns, tuple(rows), caption, decimals=1)


def difference_table(evaluated: EvaluatedRun) -> Table:
    """What the run differs by from each of the others, in points of a hundred."""
    names = metric_names(evaluated)
    found = {(d.b, d.protocol, d.metric): d for d in evaluated.differences}
    rows: list[tuple[Cell, ...]] = [
        (f"{THIS} − {who}, {protocol}", *(_points(found[who, protocol, name]) for name in names))
        for who, protocol in dict.fromkeys((d.b, d.protocol) for d in evaluated.differences)
    ]
    caption = (
        "Differences user by user, in points of a hundred, with 95 % bootstrap intervals over users. An "
        "interval that holds zero means that chance may be all there is. Other seeds are not in it."
    )
    return Table(
        ("difference", *(f"{n}@{evaluated.k}" for n in names.values())), tuple(rows), caption, decimals=1
    )


def _points(difference: Difference) -> Interval:
    return Interval(100 * difference.mean, 100 * difference.low, 100 * difference.high)


def _figure(evaluated: EvaluatedRun) -> Figure:
    dots = []
    for who in evaluated.evaluations:
        hit = mean_interval(evaluated.of(who, evaluated.protocols()[0]).per_user["hit"], 100)
        dots.append(Dot(who, hit.value, hit.low, hit.high))
    protocol = evaluated.protocols()[0]
    caption = f"Share of users with a test item in their list ({protocol}); bars are 95 % intervals."
    return draw_dots(dots, axis=f"Hit@{evaluated.k} in %, protocol {protocol}", caption=caption)
