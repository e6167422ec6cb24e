"""What came of an experiment of the paper, as a page, Markdown, CSV, LaTeX and JSON."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from towpath.experiments.paper.benchmarks import benchmark_spec
from towpath.experiments.paper.catalogue import experiment_named
from towpath.experiments.paper.claims import Verdict
from towpath.experiments.paper.experiment import Experiment, quickened
from towpath.experiments.paper.locks import LOCK, locked
from towpath.experiments.paper.record import CELLS, Record, read_record
from towpath.experiments.paper.results import BenchmarkResults
from towpath.files import write_text
from towpath.reports.figures import Figure
from towpath.reports.latex import to_latex
from towpath.reports.page import Page, Section, write_page
from towpath.reports.paper_figures import figures_of, sweep_table
from towpath.reports.paper_tables import (
    difference_table,
    further_difference_table,
    further_table,
    lift_table,
    main_table,
)
from towpath.reports.sweep_page import standalone_svg
from towpath.reports.tables import Table, to_csv, to_markdown


@dataclass(frozen=True)
class Results:
    """All that was found, and what it says of the claims."""

    experiment: Experiment
    record: Record
    found: tuple[BenchmarkResults, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def processor_hours(self) -> float:
        """What all finished cells took."""
        cells = (done for one in self.found for done in one.cells.values())
        return sum(done.processor_seconds or 0.0 for done in cells) / 3600


def read_results(folder: Path) -> Results:
    """What is finished of the experiment in this folder."""
    record = read_record(folder)
    declared = experiment_named(record.experiment)
    experiment = quickened(declared) if record.quick else declared
    found = tuple(record.found(benchmark, folder.parent / CELLS) for benchmark in record.benchmarks)
    verdicts = (claim.assess(one) for one in found if one.columns for claim in experiment.claims)
    return Results(experiment, record, found, tuple(verdict for verdict in verdicts if verdict is not None))


def write_results(results: Results, folder: Path) -> list[Path]:
    """The paths of what was written: the page first, then the other forms of the same."""
    page = paper_page(results)
    tables = [table for section in page.sections for table in section.tables]
    figures = [figure for section in page.sections for figure in section.figures if figure.svg]
    texts = {
        "results.md": to_text(page),
        "results.tex": "\n\n".join(map(to_latex, tables)) + "\n",
        "results.json": json.dumps(to_json(results), indent=1) + "\n",
    }
    texts |= {f"table-{n}.csv": to_csv(table) for n, table in enumerate(tables, start=1)}
    texts |= {f"figure-{n}.svg": standalone_svg(f.svg or "") for n, f in enumerate(figures, start=1)}
    with locked(folder / LOCK):  # another process may have finished at the same time
        write_page(page, folder / "index.html")
        for name, text in texts.items():
            write_text(folder / name, text)
    return [folder / name for name in ("index.html", *texts)]


def paper_page(results: Results) -> Page:
    """Claims first, then benchmark by benchmark, then how it was made."""
    benchmarks = [_benchmark(one, results.experiment) for one in results.found if one.columns]
    return Page(
        title=results.experiment.title,
        lead=_lead(results),
        sections=(_claims(results.verdicts), *benchmarks, _making(results)),
        footer="Made by towpath paper. No number on this page was typed in but the paper's own.",
        contents=len(benchmarks) > 1,
        wide=True,
    )


def _lead(results: Results) -> str:
    counts = Counter(verdict.outcome for verdict in results.verdicts)
    said = ", ".join(f"{number} {outcome}" for outcome, number in counts.most_common())
    quick = (
        " This was a quick run: small data, few seeds, short fits. It shows that everything works and is "
        "no basis for conclusions."
        if results.record.quick
        else ""
    )
    evaluated = f" Of its claims, each in each location: {said}." if said else ""
    return f"{results.experiment.about}{evaluated}{quick}"


def _claims(verdicts: Sequence[Verdict]) -> Section:
    meaning = (
        "Held: the whole 95 % interval is on the claim's side under every measure; in part: under some, and "
        "against it under none; undecided: zero is in every interval; mixed: both ways; did not hold: "
        "against it under some, for it under none. With few seeds an interval knows little of the spread "
        "between runs."
    )
    return Section(
        "What was claimed, and what held",
        paragraphs=(meaning,),
        points=tuple(verdict.sentence for verdict in verdicts),
    )


def _benchmark(found: BenchmarkResults, experiment: Experiment) -> Section:
    facts = found.facts
    methods = [column for column in experiment.methods if column in found.columns]
    size = (
        f"{facts.users:,} users, {facts.items:,} items, {facts.events:,} events; {facts.judged_users:,} "
        "users are evaluated, each on the last event."
    )
    stand_in = (
        (f"It stands in for {benchmark_spec(facts.stands_for).title}, for which the paper's numbers are.",)
        if facts.stands_for not in ("", facts.name)
        else ()
    )
    failures = tuple(f"{c}, seed {s}, broke down: {why}" for (c, s), why in found.failures.items())
    return Section(
        facts.title,
        paragraphs=(size, *stand_in, *facts.notes, *failures),
        tables=tuple(table for table in _tables(found, experiment, methods) if table is not None),
        figures=tuple(figures_of(found, experiment)),
    )


def _tables(found: BenchmarkResults, experiment: Experiment, methods: Sequence[str]) -> list[Table | None]:
    if experiment.sweeps or not methods:
        swept = [s for s in experiment.sweeps if any(s.label(v) in found.columns for v in s.values)]
        return [sweep_table(found, sweep) for sweep in swept]
    lifts = lift_table(found, experiment) if experiment.k == 20 else None
    return [
        main_table(found, methods),
        lifts,
        difference_table(found, experiment.pairs),
        further_table(found, methods),
        further_difference_table(found, experiment.pairs),
    ]


def _making(results: Results) -> Section:
    record, finished = results.record, sum(len(one.cells) for one in results.found)
    cells = f"{finished:,} of {len(record.cells):,} fits are finished"
    origins = [
        f"{column} on {benchmark}: {origin}"
        for benchmark, mine in record.origins.items()
        for column, origin in mine.items()
    ]
    tuned = f"Settings: {'; '.join(origins)}; all others as declared." if origins else "Settings as declared."
    seeds = ", ".join(map(str, record.seeds))
    return Section(
        "How it was made",
        paragraphs=(
            f"{cells}; they took {_spent(results.processor_hours)} of one processor. Seeds {seeds}; split "
            "and evaluation's negatives are the same for all. "
            f"{record.hardware}. Code {record.code}. {tuned}",
        ),
        points=results.experiment.departures,
        commands=(record.command,) if record.command else (),
    )


def _spent(hours: float) -> str:
    """A time as people say it.

    >>> _spent(0.01), _spent(0.5), _spent(3.25)
    ('36 seconds', '30 minutes', '3.2 hours')
    """
    if hours < 1 / 30:
        return f"{3600 * hours:.0f} seconds"
    return f"{60 * hours:.0f} minutes" if hours < 2 else f"{hours:.1f} hours"


def to_text(page: Page) -> str:
    """The page in Markdown; figures are linked."""
    lines, number = [f"# {page.title}", page.lead], 0
    for section in page.sections:
        lines += [f"## {section.heading}", *section.paragraphs]
        lines += ["\n".join(f"- {point}" for point in section.points)] if section.points else []
        lines += ["\n".join(f"    {command}" for command in section.commands)] if section.commands else []
        for table in section.tables:
            lines += [to_markdown(table), table.caption]
        for figure in section.figures:
            number += figure.svg is not None
            lines += [_linked(figure, number)]
    return "\n\n".join(lines) + "\n"


def _linked(figure: Figure, number: int) -> str:
    return f"![{figure.caption}](figure-{number}.svg)" if figure.svg else figure.caption


def to_json(results: Results) -> dict[str, Any]:
    """Every mean, with what it depends on, as plain numbers and texts."""
    numbers = {one.facts.name: _numbers(one) for one in results.found}
    verdicts = [vars(verdict) for verdict in results.verdicts]
    return {
        "experiment": results.experiment.name,
        "quick": results.record.quick,
        "command": results.record.command,
        "code": results.record.code,
        "hardware": results.record.hardware,
        "processor_hours": results.processor_hours,
        "benchmarks": numbers,
        "verdicts": [verdict | {"arena": verdict["benchmark"]} for verdict in verdicts],
        "arenas": numbers,  # the key's name before 0.2, which scripts read
        "settings": results.record.settings,
    }


def _numbers(found: BenchmarkResults) -> dict[str, Any]:  # any JSON
    measures = (*found.facts.measures(found.k), *found.facts.further(found.k))
    return {
        "fingerprint": found.facts.fingerprint,
        "notes": list(found.facts.notes),
        "columns": {
            column: {measure.heading: found.values(column, measure) for measure in measures}
            for column in found.columns
        },
    }
