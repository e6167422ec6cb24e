"""The tables of an experiment of the paper: our numbers, the paper's next to them, and paired differences."""

from collections.abc import Sequence

from towpath.experiments.paper.experiment import Experiment
from towpath.experiments.paper.published import PUBLISHED_LIFTS, published_difference, published_value
from towpath.experiments.paper.results import BenchmarkResults, Measure
from towpath.reports.tables import NOTHING, Cell, Ranked, Table
from towpath.stats.spread import scaled


def main_table(results: BenchmarkResults, columns: Sequence[str]) -> Table:
    """The measures that the paper publishes, ours and the paper's side by side."""
    measures = results.facts.measures(results.k)
    shown = {measure: _marked(results, columns, measure) for measure in measures}
    heads = ("method", *(text for m in measures for text in (m.heading, f"{m.name} in the paper")))
    rows = tuple(
        (c, *(cell for m in measures for cell in (shown[m][c], _published(results, c, m)))) for c in columns
    )
    scale = "times 100" if results.facts.best is None else "Hit and NDCG times 100, Rel as it is"
    best = (
        ""
        if results.facts.best is None
        else f" The best possible Rel@{results.k} is {results.facts.best:.2f}."
    )
    marks = " The best is bold, the second best underlined." if len(columns) > 2 else ""
    caption = (
        f"{results.facts.title}: {_seeds(results)}, {scale}; the protocol is in parentheses.{marks}{best}"
    )
    return Table(heads, rows, caption, decimals=2)


def further_table(results: BenchmarkResults, columns: Sequence[str]) -> Table:
    """The measures that hide what a user has seen, and what a fit cost."""
    measures = results.facts.further(results.k)
    shown = {measure: _marked(results, columns, measure) for measure in measures}
    heads = ("method", *(m.heading for m in measures), "epochs", "CPU seconds")
    rows = tuple(
        (c, *(shown[m][c] for m in measures), round(results.epochs(c)), round(results.processor_seconds(c)))
        for c in columns
    )
    caption = (
        f"{results.facts.title}, other protocols, times 100: `full` ranks the whole catalogue without what "
        "the user has seen, `sampled` a hundred unseen items. Epochs and CPU seconds are those of one "
        "fit, with all its evaluation."
    )
    return Table(heads, rows, caption, decimals=2)


def difference_table(results: BenchmarkResults, pairs: Sequence[tuple[str, str]]) -> Table | None:
    """Each pair's difference under the paper's measures with its interval, and the paper's own next to it."""
    there = [pair for pair in pairs if results.common_seeds(pair)]
    measures = results.facts.measures(results.k)
    rows = []
    for pair in there:
        cells: list[Cell] = [" − ".join(pair)]
        for measure in measures:
            gap = (
                published_difference(results.facts.published_as, pair, measure.published)
                if results.k == 10
                else None
            )
            cells += [results.difference(*pair, measure), NOTHING if gap is None else gap]
        rows.append(tuple(cells))
    heads = ("difference", *(t for m in measures for t in (m.heading, f"{m.name} in the paper")))
    caption = (
        f"{results.facts.title}: differences, paired by user and seed; next to them the difference of the "
        "paper's means."
    )
    return Table(heads, tuple(rows), caption, decimals=2) if rows else None


def further_difference_table(results: BenchmarkResults, pairs: Sequence[tuple[str, str]]) -> Table | None:
    """The same under the other protocols."""
    there = [pair for pair in pairs if results.common_seeds(pair)]
    measures = results.facts.further(results.k)
    rows: list[tuple[Cell, ...]] = [
        (" − ".join(pair), *(results.difference(*pair, m) for m in measures)) for pair in there
    ]
    caption = f"{results.facts.title}, other protocols: differences, paired by user and seed."
    heads = ("difference", *(m.heading for m in measures))
    return Table(heads, tuple(rows), caption, decimals=2) if rows else None


def lift_table(results: BenchmarkResults, experiment: Experiment) -> Table | None:
    """Relative lifts over the control in per cent, as the paper publishes them for its A/B/C test."""
    control = next(iter(experiment.methods))
    others = [column for column in results.columns if column in PUBLISHED_LIFTS]
    if control not in results.columns or not others:
        return None
    measures = [Measure(f"{n}@{results.k}", "full", m) for n, m in (("Recall", "recall"), ("NDCG", "ndcg"))]
    rows = []
    for column in others:
        cells: list[Cell] = [column]
        for measure in measures:
            base, gap = results.mean(control, measure).mean, results.difference(column, control, measure)
            cells.append(scaled(gap, 100 / base))
            cells.append(PUBLISHED_LIFTS[column][measure.metric])
        rows.append(tuple(cells))
    heads = ("method", *(t for m in measures for t in (f"{m.heading}, %", f"{m.name} in the paper, %")))
    caption = f"{results.facts.title}: relative lift over {control} in per cent."
    return Table(heads, tuple(rows), caption, decimals=2)


def _marked(results: BenchmarkResults, columns: Sequence[str], measure: Measure) -> dict[str, Cell]:
    """Mean and spread of each column, the best and the second best marked."""
    means = {column: results.mean(column, measure) for column in columns}
    order = sorted(columns, key=lambda column: -means[column].mean)
    places = {column: place for place, column in enumerate(order[:2], start=1)} if len(order) > 2 else {}
    return {column: Ranked(means[column], places.get(column, 0)) for column in columns}


def _published(results: BenchmarkResults, column: str, measure: Measure) -> Cell:
    if results.k != 10:
        return NOTHING
    value = published_value(results.facts.published_as, column, measure.published)
    return NOTHING if value is None else value


def _seeds(results: BenchmarkResults) -> str:
    """Over how many seeds the means of a table are."""
    counts = {len(results.seeds_of(column)) for column in results.columns if column not in results.once}
    few, many = min(counts, default=1), max(counts, default=1)
    if many == 1:
        return "one seed"
    if few == many:
        return f"{many} seeds"
    fewer = {c: len(results.seeds_of(c)) for c in results.columns if c not in results.once}
    listed = ", ".join(f"{column} {n}" for column, n in fewer.items() if n < many)
    return f"{many} seeds, but of {listed}"
