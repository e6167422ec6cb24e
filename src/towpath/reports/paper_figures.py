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
from towpath.reports.tables import Cell, Mean, Table

_SPREAD = "the band reaches one standard deviation between seeds to either side"
_BINS = 12
# Weights beyond these shares of all are left out of the picture of their distribution.
_TAILS = (0.002, 0.998)

Select = Callable[[StoredPairs], NDArray[np.bool_]]


def figures_of(found: BenchmarkResults, experiment: Experiment) -> list[Figure]:
    """All figures that the experiment wants of this benchmark."""
    drawn = [figure for sweep in experiment.sweeps for figure in _sweep_figures(found, sweep)]
    if "weights" in experiment.pictures:
        drawn += [f for c in experiment.methods if c in found.columns for f in _weight_figures(found, c)]
    if "time" in experiment.pictures:
        drawn += _time_figures(found, list(experiment.methods))
    return drawn


# -- one setting over several values ------------------------------------------------------------------------


def _sweep_figures(found: BenchmarkResults, sweep: Sweep) -> list[Figure]:
    values = [value for value in sweep.values if sweep.label(value) in found.columns]
    if len(values) < 2:
        return []
    measures = (*found.facts.measures(found.k), *found.facts.further(found.k))
    drawn = {(m.protocol, _drawn_metric(found, m)): m for m in reversed(measures)}
    return [_sweep_figure(found, sweep, measure) for measure in reversed(drawn.values())]


def _drawn_metric(found: BenchmarkResults, measure: Measure) -> str:
    """Rel of one hidden event is Hit under full ranking: one figure for both."""
    return "hit" if measure.metric == "rel" and found.facts.best is None else measure.metric


def _sweep_figure(found: BenchmarkResults, sweep: Sweep, measure: Measure) -> Figure:
    values = [value for value in sweep.values if sweep.label(value) in found.columns]
    points = [
        _spread(location, found.values(sweep.label(value), measure)) for location, value in enumerate(values)
    ]
    levels = {name: found.mean(name, measure)[0] for name in sweep.references if name in found.columns}
    dashed = f"; dashed: {', '.join(levels)}" if levels else ""
    caption = f"{sweep.name.capitalize()}: {measure.heading} over {sweep.setting}; {_SPREAD}{dashed}."
    axes = Axes(sweep.setting, measure.heading, whole=False, zero=False, small=True)
    style = SeriesStyle(
        labels=tuple(f"{value:g}" if isinstance(value, float) else str(value) for value in values),
        levels=levels,
    )
    return draw_series({"": points}, axes, caption, style)


def sweep_table(found: BenchmarkResults, sweep: Sweep) -> Table:
    """One row for each value and each reference, one column for each measure."""
    measures = (*found.facts.measures(found.k), *found.facts.further(found.k))
    labels = {str(value): sweep.label(value) for value in sweep.values} | {r: r for r in sweep.references}
    rows: list[tuple[Cell, ...]] = [
        (name, *(Mean(*found.mean(label, m)) for m in measures), round(found.processor_seconds(label)))
        for name, label in labels.items()
        if label in found.columns
    ]
    caption = f"{found.facts.title}, {sweep.name}: mean ± standard deviation over seeds."
    heads = (sweep.setting, *(m.heading for m in measures), "CPU seconds")
    return Table(heads, tuple(rows), caption, decimals=2)


def _spread(x: float, values: Sequence[float]) -> BandPoint:
    mean, sd = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return BandPoint(x, mean, mean - sd, mean + sd)


# -- learned weights ----------------------------------------------------------------------------------------


def _weight_figures(found: BenchmarkResults, column: str) -> list[Figure]:
    kept = found.pairs(column)
    if not kept:
        return []
    if kept[0].exposure is not None:
        return [_against_exposure(kept, column)]
    weighs_positives = bool((kept[0].reweight_mask & kept[0].interacted).any())
    first = [_by_label(kept, column)] if weighs_positives else []
    return [*first, _against_score(kept, column)]


def _by_label(kept: Sequence[StoredPairs], column: str) -> Figure:
    """Where the weights of positives and of negatives lie."""
    everything = np.concatenate([pairs.weights for pairs in kept])
    low, high = (float(end) for end in np.quantile(everything, _TAILS))
    edges = np.linspace(low, high, 31)
    middles = (edges[1:] + edges[:-1]) / 2
    rows = {}
    for name, interacted in (("positives", True), ("negatives", False)):
        shares = [_shares(pairs.weights[pairs.interacted == interacted], edges) for pairs in kept]
        rows[name] = [_spread(float(x), [100 * s[i] for s in shares]) for i, x in enumerate(middles)]
    axes = Axes("weight (mean 1)", "share of pairs, %", whole=False, small=True)
    caption = f"{column}: weights of positive and negative training pairs; {_SPREAD}."
    return draw_series(rows, axes, caption)


def _shares(weights: NDArray[np.float32], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    counts, _ = np.histogram(np.clip(weights, edges[0], edges[-1]), bins=edges)
    return counts / max(1, len(weights))


def _against_score(kept: Sequence[StoredPairs], column: str) -> Figure:
    """Weights along the score of f, among what it would show and among the rest."""
    groups: dict[str, Select] = {
        "shown": lambda pairs: pairs.reweight_mask & pairs.shown,
        "not shown": lambda pairs: pairs.reweight_mask & ~pairs.shown,
    }
    rows = {name: _along(kept, select, lambda pairs: pairs.scores) for name, select in groups.items()}
    axes = Axes("score of f (logit)", "mean weight", whole=False, zero=False, small=True)
    caption = f"{column}: weight along the score, of pairs that f would show and of the others; {_SPREAD}."
    return draw_series({name: points for name, points in rows.items() if points}, axes, caption)


def _against_exposure(kept: Sequence[StoredPairs], column: str) -> Figure:
    """Weights along the true chance of having been shown, among negatives and among positives."""
    groups: dict[str, Select] = {
        "negatives": lambda pairs: pairs.reweight_mask & ~pairs.interacted,
        "positives": lambda pairs: pairs.reweight_mask & pairs.interacted,
    }
    rows = {name: _along(kept, select, _exposure) for name, select in groups.items()}
    axes = Axes("true chance of having been shown", "mean weight", whole=False, zero=False, small=True)
    caption = f"{column}: weight along true exposure, on negatives and on positives; {_SPREAD}."
    return draw_series({name: points for name, points in rows.items() if points}, axes, caption)


def _exposure(pairs: StoredPairs) -> NDArray[np.float32]:
    assert pairs.exposure is not None, "asked of simulated worlds only"
    return pairs.exposure


def _along(
    kept: Sequence[StoredPairs], select: Select, of: Callable[[StoredPairs], NDArray[np.float32]]
) -> list[BandPoint]:
    """Mean weights in bins of equal size along something: the bins of each seed, averaged one by one."""
    chosen = [pairs.where(select(pairs)) for pairs in kept]
    rows = [
        binned(of(pairs), pairs.weights.astype(np.float64), _BINS) for pairs in chosen if len(pairs.weights)
    ]
    if not rows:
        return []
    length = min(map(len, rows))
    return [
        _spread(float(np.mean([row[i].x for row in rows])), [row[i].mean for row in rows])
        for i in range(length)
    ]


# -- time ---------------------------------------------------------------------------------------------------


def _time_figures(found: BenchmarkResults, columns: Sequence[str]) -> list[Figure]:
    """Validation after every epoch against seconds of training so far, means over seeds."""
    there = [column for column in columns if column in found.columns]
    drawn = []
    for metric, name in (("validation_hit", "Hit"), ("validation_ndcg", "NDCG")):
        rows = {column: _over_time(found, column, metric) for column in there}
        axes = Axes("seconds of training", f"validation {name}@10 (full) × 100", whole=False, zero=False)
        caption = f"Each dot is an epoch, as far as all seeds go; {_SPREAD}."
        kept = {column: points for column, points in rows.items() if points}
        if kept:
            drawn.append(draw_series(kept, axes, caption, SeriesStyle(from_zero=True)))
    return drawn


def _over_time(found: BenchmarkResults, column: str, metric: str) -> list[BandPoint]:
    histories = [found.done(column, seed).history for seed in found.seeds_of(column)]
    length = min(map(len, histories), default=0)
    seconds = [np.cumsum([row["seconds"] for row in history]) for history in histories]
    return [
        _spread(float(np.mean([s[i] for s in seconds])), [100 * h[i][metric] for h in histories])
        for i in range(length)
    ]
