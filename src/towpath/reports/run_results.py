"""How good a run is: metrics with intervals under named protocols, and what it differs by from others."""

from towpath.reports.figures import Figure, draw_dots
from towpath.reports.intervals import mean_interval
from towpath.reports.page import Section
from towpath.reports.run_facts import THIS, EvaluatedRun
from towpath.reports.tables import Cell, Table
from towpath.stats.spread import scaled

_METRICS = {"hit": "Hit", "ndcg": "NDCG", "recall": "Recall", "mrr": "MRR"}
_PROTOCOLS = {
    "full": "ranked against the whole catalogue, what the user has seen left out",
    "sampled": "ranked against 100 random items that the user never interacted with, which is easier the "
    "larger the catalogue is",
    "paper": "ranked against 100 random ids drawn as in the paper",
}


def results_section(evaluated: EvaluatedRun) -> Section:
    """Metrics on the test part."""
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
    per_user = evaluated.of(THIS, evaluated.protocols()[0]).per_user
    same = bool((per_user["recall"] == per_user["hit"]).all())
    return {name: shown for name, shown in _METRICS.items() if not (same and name == "recall")}


def _metrics_table(evaluated: EvaluatedRun, protocol: str) -> Table:
    """One row for each of whom, times 100."""
    names = metric_names(evaluated)
    rows: list[tuple[Cell, ...]] = [
        (who, *(mean_interval(evaluated.of(who, protocol).per_user[name], 100) for name in names))
        for who in evaluated.evaluations
    ]
    columns = (protocol, *(f"{shown}@{evaluated.k}" for shown in names.values()))
    caption = f"Protocol {protocol}: {_PROTOCOLS[protocol]}. In %."
    return Table(columns, tuple(rows), caption, decimals=1)


def difference_table(evaluated: EvaluatedRun) -> Table:
    """Differences of the run to each of the others, in percentage points."""
    names = metric_names(evaluated)
    gaps = {(d.b, d.protocol, d.metric): scaled(d.estimate, 100) for d in evaluated.differences}
    rows: list[tuple[Cell, ...]] = [
        (f"{THIS} − {who}, {protocol}", *(gaps[who, protocol, name] for name in names))
        for who, protocol in dict.fromkeys((d.b, d.protocol) for d in evaluated.differences)
    ]
    caption = (
        "Differences, paired by user, in percentage points. Where the interval holds zero, chance alone may "
        "explain the difference. The interval does not cover other seeds."
    )
    return Table(
        ("difference", *(f"{n}@{evaluated.k}" for n in names.values())), tuple(rows), caption, decimals=1
    )


def _figure(evaluated: EvaluatedRun) -> Figure:
    protocol = evaluated.protocols()[0]
    hits = {who: evaluated.of(who, protocol).per_user["hit"] for who in evaluated.evaluations}
    dots = {who: mean_interval(values, 100) for who, values in hits.items()}
    how = next(iter(dots.values())).how
    caption = f"Share of users with a test item in their list ({protocol}); bars: {how}."
    return draw_dots(dots, axis=f"Hit@{evaluated.k} in %, protocol {protocol}", caption=caption)
