"""The figures of an experiment of the paper: sweeps, learned weights, training time against quality."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from towpath.diagnostics.weights import binned
from towpath.experiments.paper.experiment import Experiment, Sweep
from towpath.experiments.paper.results import BenchmarkResults, Measure
from towpath.experiments.paper.weights import StoredPairs
from towpath.reports.bands import BandPoint
from towpath.reports.figures import Figure
from towpath.reports.lines import Axes
from towpath.reports.series import SeriesStyle, draw_series
from towpath.reports.tables import Cell, Table
from towpath.stats.spread import over_seeds

_SPREAD = "the band reaches one standard deviation between seeds to either side"
_BINS = 12
# Weights beyond these shares of all are left out of the picture of their distribution.
_TAILS = (0.002, 0.998)

Select = Callable[[StoredPairs], NDArray[np.bool_]]


def figures_of(results: BenchmarkResults, experiment: Experiment) -> list[Figure]:
    """All figures of the experiment on this benchmark."""
    drawn = [figure for sweep in experiment.sweeps for figure in _sweep_figures(results, sweep)]
    if "weights" in experiment.pictures:
        drawn += [f for c in experiment.methods if c in results.columns for f in _weight_figures(results, c)]
    if "time" in experiment.pictures:
        drawn += _time_figures(results, list(experiment.methods))
    return drawn


# -- one setting over several values ------------------------------------------------------------------------


def _sweep_figures(results: BenchmarkResults, sweep: Sweep) -> list[Figure]:
    values = [value for value in sweep.values if sweep.label(value) in results.columns]
    if len(values) < 2:
        return []
    measures = (*results.facts.measures(results.k), *results.facts.further(results.k))
    drawn = {(m.protocol, _drawn_metric(results, m)): m for m in reversed(measures)}
    return [_sweep_figure(results, sweep, measure) for measure in reversed(drawn.values())]


def _drawn_metric(results: BenchmarkResults, measure: Measure) -> str:
    """Rel of one hidden event is Hit under full ranking: one figure for both."""
    return "hit" if measure.metric == "rel" and results.facts.best is None else measure.metric


def _sweep_figure(results: BenchmarkResults, sweep: Sweep, measure: Measure) -> Figure:
    values = [value for value in sweep.values if sweep.label(value) in results.columns]
    points = [
        (float(at), over_seeds(results.values(sweep.label(value), measure)))
        for at, value in enumerate(values)
    ]
    levels = {name: results.mean(name, measure).mean for name in sweep.references if name in results.columns}
    dashed = f"; dashed: {', '.join(levels)}" if levels else ""
    caption = f"{sweep.name.capitalize()}: {measure.heading} over {sweep.setting}; {_SPREAD}{dashed}."
    axes = Axes(sweep.setting, measure.heading, whole=False, zero=False, small=True)
    style = SeriesStyle(
        labels=tuple(f"{value:g}" if isinstance(value, float) else str(value) for value in values),
        levels=levels,
    )
    return draw_series({"": points}, axes, caption, style)


def sweep_table(results: BenchmarkResults, sweep: Sweep) -> Table:
    """One row for each value and each reference, one column for each measure."""
    measures = (*results.facts.measures(results.k), *results.facts.further(results.k))
    labels = {str(value): sweep.label(value) for value in sweep.values} | {r: r for r in sweep.references}
    rows: list[tuple[Cell, ...]] = [
        (name, *(results.mean(label, m) for m in measures), round(results.processor_seconds(label)))
        for name, label in labels.items()
        if label in results.columns
    ]
    caption = f"{results.facts.title}, {sweep.name}."
    heads = (sweep.setting, *(m.heading for m in measures), "CPU seconds")
    return Table(heads, tuple(rows), caption, decimals=2)


# -- learned weights ----------------------------------------------------------------------------------------


def _weight_figures(results: BenchmarkResults, column: str) -> list[Figure]:
    runs = results.pairs(column)
    if not runs:
        return []
    if runs[0].exposure is not None:
        return [_against_exposure(runs, column)]
    weighs_positives = bool((runs[0].reweight_mask & runs[0].interacted).any())
    first = [_by_label(runs, column)] if weighs_positives else []
    return [*first, _against_score(runs, column)]


def _by_label(runs: Sequence[StoredPairs], column: str) -> Figure:
    """Where the weights of positives and of negatives lie."""
    everything = np.concatenate([pairs.weights for pairs in runs])
    low, high = (float(end) for end in np.quantile(everything, _TAILS))
    edges = np.linspace(low, high, 31)
    middles = (edges[1:] + edges[:-1]) / 2
    rows = {}
    for name, interacted in (("positives", True), ("negatives", False)):
        shares = [_shares(pairs.weights[pairs.interacted == interacted], edges) for pairs in runs]
        rows[name] = [(float(x), over_seeds([100 * s[i] for s in shares])) for i, x in enumerate(middles)]
    axes = Axes("weight (mean 1)", "share of pairs, %", whole=False, small=True)
    caption = f"{column}: weights of positive and negative training pairs; {_SPREAD}."
    return draw_series(rows, axes, caption)


def _shares(weights: NDArray[np.float32], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    counts, _ = np.histogram(np.clip(weights, edges[0], edges[-1]), bins=edges)
    return counts / max(1, len(weights))


def _against_score(runs: Sequence[StoredPairs], column: str) -> Figure:
    """Weights along the score of f, among what it would show and among the rest."""
    groups: dict[str, Select] = {
        "shown": lambda pairs: pairs.reweight_mask & pairs.shown,
        "not shown": lambda pairs: pairs.reweight_mask & ~pairs.shown,
    }
    rows = {name: _along(runs, select, lambda pairs: pairs.scores) for name, select in groups.items()}
    axes = Axes("score of f (logit)", "mean weight", whole=False, zero=False, small=True)
    caption = f"{column}: weight along the score, of pairs that f would show and of the others; {_SPREAD}."
    return draw_series({name: points for name, points in rows.items() if points}, axes, caption)


def _against_exposure(runs: Sequence[StoredPairs], column: str) -> Figure:
    """Weights along the true chance of having been shown, among negatives and among positives."""
    groups: dict[str, Select] = {
        "negatives": lambda pairs: pairs.reweight_mask & ~pairs.interacted,
        "positives": lambda pairs: pairs.reweight_mask & pairs.interacted,
    }
    rows = {name: _along(runs, select, _exposure) for name, select in groups.items()}
    axes = Axes("true chance of having been shown", "mean weight", whole=False, zero=False, small=True)
    caption = f"{column}: weight along true exposure, on negatives and on positives; {_SPREAD}."
    return draw_series({name: points for name, points in rows.items() if points}, axes, caption)


def _exposure(pairs: StoredPairs) -> NDArray[np.float32]:
    assert pairs.exposure is not None, "known in simulated worlds only"
    return pairs.exposure


def _along(
    runs: Sequence[StoredPairs], select: Select, of: Callable[[StoredPairs], NDArray[np.float32]]
) -> list[BandPoint]:
    """Mean weights in bins of equal size along something: the bins of each seed, averaged one by one."""
    selected = [pairs.where(select(pairs)) for pairs in runs]
    rows = [
        binned(of(pairs), pairs.weights.astype(np.float64), _BINS) for pairs in selected if len(pairs.weights)
    ]
    if not rows:
        return []
    length = min(map(len, rows))
    return [
        (float(np.mean([row[i][0] for row in rows])), over_seeds([row[i][1].mean for row in rows]))
        for i in range(length)
    ]


# -- time ---------------------------------------------------------------------------------------------------


def _time_figures(results: BenchmarkResults, columns: Sequence[str]) -> list[Figure]:
    """Validation after every epoch against seconds of training so far, means over seeds."""
    there = [column for column in columns if column in results.columns]
    drawn = []
    for metric, name in (("validation_hit", "Hit"), ("validation_ndcg", "NDCG")):
        rows = {column: _over_time(results, column, metric) for column in there}
        axes = Axes("seconds of training", f"validation {name}@10 (full) × 100", whole=False, zero=False)
        caption = f"Each dot is an epoch, as far as all seeds go; {_SPREAD}."
        series = {column: points for column, points in rows.items() if points}
        if series:
            drawn.append(draw_series(series, axes, caption, SeriesStyle(from_zero=True)))
    return drawn


def _over_time(results: BenchmarkResults, column: str, metric: str) -> list[BandPoint]:
    histories = [results.run(column, seed).history for seed in results.seeds_of(column)]
    length = min(map(len, histories), default=0)
    seconds = [np.cumsum([row["seconds"] for row in history]) for history in histories]
    return [
        (float(np.mean([s[i] for s in seconds])), over_seeds([100 * h[i][metric] for h in histories]))
        for i in range(length)
    ]
