"""The tables of an experiment of the paper: our numbers, the paper's next to them, and paired differences."""

from collections.abc import Sequence

from towpath.experiments.paper.experiment import Experiment
from towpath.experiments.paper.published import PUBLISHED_LIFTS, printed, printed_difference
from towpath.experiments.paper.results import BenchmarkResults, Measure
from towpath.reports.tables import NOTHING, Cell, Interval, Mean, Table


def main_table(found: BenchmarkResults, columns: Sequence[str]) -> Table:
    """The measures that the paper prints, ours and the paper's side by side."""
    measures = found.facts.measures(found.k)
    shown = {measure: _marked(found, columns, measure) for measure in measures}
    heads = ("method", *(text for m in measures for text in (m.heading, f"{m.name} in the paper")))
    rows = tuple(
        (c, *(cell for m in measures for cell in (shown[m][c], _printed(found, c, m)))) for c in columns
    )
    scale = "times 100" if found.facts.best is None else "Hit and NDCG times 100, Rel as it is"
    best = "" if found.facts.best is None else f" The best possible Rel@{found.k} is {found.facts.best:.2f}."
    marks = " The best is bold, the second best underlined." if len(columns) > 2 else ""
    caption = f"{found.facts.title}: {_seeds(found)}, {scale}; in brackets the protocol.{marks}{best}"
    return Table(heads, rows, caption, decimals=2)


def further_table(found: BenchmarkResults, columns: Sequence[str]) -> Table:
    """The measures that hide what a user has seen, and what a fit cost."""
    measures = found.facts.further(found.k)
    shown = {measure: _marked(found, columns, measure) for measure in measures}
    heads = ("method", *(m.heading for m in measures), "epochs", "CPU seconds")
    rows = tuple(
        (c, *(shown[m][c] for m in measures), round(found.epochs(c)), round(found.processor_seconds(c)))
        for c in columns
    )
    caption = (
        f"{found.facts.title}, other protocols, times 100: `full` ranks the whole catalogue without what the "
        "user has seen, `sampled` a hundred unseen items. Epochs and CPU seconds are those of one fit, with "
        "all its evaluation."
    )
    return Table(heads, rows, caption, decimals=2)


def difference_table(found: BenchmarkResults, pairs: Sequence[tuple[str, str]]) -> Table | None:
    """Each pair's difference under the paper's measures with its interval, and the paper's own next to it."""
    there = [pair for pair in pairs if found.common_seeds(pair)]
    measures = found.facts.measures(found.k)
    rows = []
    for pair in there:
        cells: list[Cell] = [" − ".join(pair)]
        for measure in measures:
            gap = (
                printed_difference(found.facts.published_as, pair, measure.printed) if found.k == 10 else None
            )
            cells += [_gap(found, pair, measure), NOTHING if gap is None else gap]
        rows.append(tuple(cells))
    heads = ("difference", *(t for m in measures for t in (m.heading, f"{m.name} in the paper")))
    caption = (
        f"{found.facts.title}: differences, paired by user and seed, with 95 % intervals from a bootstrap "
        "over users and seeds; next to them the difference of the paper's means."
    )
    return Table(heads, tuple(rows), caption, decimals=2) if rows else None


def further_difference_table(found: BenchmarkResults, pairs: Sequence[tuple[str, str]]) -> Table | None:
    """The same under the other protocols."""
    there = [pair for pair in pairs if found.common_seeds(pair)]
    measures = found.facts.further(found.k)
    rows: list[tuple[Cell, ...]] = [
        (" − ".join(pair), *(_gap(found, pair, m) for m in measures)) for pair in there
    ]
    caption = f"{found.facts.title}, other protocols: differences with 95 % intervals."
    heads = ("difference", *(m.heading for m in measures))
    return Table(heads, tuple(rows), caption, decimals=2) if rows else None


def lift_table(found: BenchmarkResults, experiment: Experiment) -> Table | None:
    """Relative lifts over the control in per cent, as the paper prints them for its A/B/C test."""
    control = next(iter(experiment.methods))
    others = [column for column in found.columns if column in PUBLISHED_LIFTS]
    if control not in found.columns or not others:
        return None
    measures = [Measure(f"{n}@{found.k}", "full", m) for n, m in (("Recall", "recall"), ("NDCG", "ndcg"))]
    rows = []
    for column in others:
        cells: list[Cell] = [column]
        for measure in measures:
            base, gap = found.mean(control, measure)[0], found.difference(column, control, measure)
            cells.append(Interval(*(100 * part / base for part in (gap.mean, gap.low, gap.high))))
            cells.append(PUBLISHED_LIFTS[column][measure.metric])
        rows.append(tuple(cells))
    heads = ("method", *(t for m in measures for t in (f"{m.heading}, %", f"{m.name} in the paper, %")))
    caption = f"{found.facts.title}: relative lift over {control} in per cent, with 95 % intervals."
    return Table(heads, tuple(rows), caption, decimals=2)


def _marked(found: BenchmarkResults, columns: Sequence[str], measure: Measure) -> dict[str, Cell]:
    """Mean and spread of each column, the best and the second best marked."""
    means = {column: found.mean(column, measure) for column in columns}
    order = sorted(columns, key=lambda column: -means[column][0])
    places = (
        {column: location for location, column in enumerate(order[:2], start=1)} if len(order) > 2 else {}
    )
    return {column: Mean(*means[column], places.get(column, 0)) for column in columns}


def _printed(found: BenchmarkResults, column: str, measure: Measure) -> Cell:
    number = printed(found.facts.published_as, column, measure.printed) if found.k == 10 else None
    return NOTHING if number is None else Mean(*number)


def _gap(found: BenchmarkResults, pair: tuple[str, str], measure: Measure) -> Interval:
    gap = found.difference(*pair, measure)
    return Interval(gap.mean, gap.low, gap.high)


def _seeds(found: BenchmarkResults) -> str:
    """What the numbers of a table are, and of how many seeds."""
    counts = {len(found.seeds_of(column)) for column in found.columns if column not in found.once}
    few, many = min(counts, default=1), max(counts, default=1)
    if many == 1:
        return "one seed"
    seeds = f"{many} seeds" if few == many else f"{few} to {many} seeds (not all are finished)"
    return f"mean ± standard deviation over {seeds}"
