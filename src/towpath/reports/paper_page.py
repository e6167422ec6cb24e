"""The results of an experiment of the paper, as a page, Markdown, CSV, LaTeX and JSON."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from towpath.experiments.paper.benchmarks import benchmark_spec
from towpath.experiments.paper.catalogue import experiment_named
from towpath.experiments.paper.claims import Verdict
from towpath.experiments.paper.experiment import Experiment, quick_version
from towpath.experiments.paper.record import Record, read_record
from towpath.experiments.paper.results import BenchmarkResults
from towpath.experiments.result_store import open_store
from towpath.files import write_text
from towpath.locks import LOCK, locked
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
class ExperimentResults:
    """All results of an experiment, and whether its claims held."""

    experiment: Experiment
    record: Record
    benchmarks: tuple[BenchmarkResults, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def processor_hours(self) -> float:
        """Processor time of all finished runs."""
        runs = (run for one in self.benchmarks for run in one.runs.values())
        return sum(run.processor_seconds or 0.0 for run in runs) / 3600


def read_results(folder: Path) -> ExperimentResults:
    """The finished results of the experiment in this folder."""
    record = read_record(folder)
    declared = experiment_named(record.experiment)
    experiment = quick_version(declared) if record.quick else declared
    store = open_store(folder.parent, record.code)
    benchmarks = tuple(record.results_on(facts, store) for facts in record.benchmarks)
    verdicts = (claim.assess(one) for one in benchmarks if one.columns for claim in experiment.claims)
    assessed = tuple(verdict for verdict in verdicts if verdict is not None)
    return ExperimentResults(experiment, record, benchmarks, assessed)


def write_results(results: ExperimentResults, folder: Path) -> list[Path]:
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


def paper_page(results: ExperimentResults) -> Page:
    """Claims first, then benchmark by benchmark, then how it was made."""
    benchmarks = [_benchmark(one, results.experiment) for one in results.benchmarks if one.columns]
    return Page(
        title=results.experiment.title,
        lead=_lead(results),
        sections=(_claims(results.verdicts), *benchmarks, _making(results)),
        footer="Made by towpath paper. No number on this page was typed in but the paper's own.",
        contents=len(benchmarks) > 1,
        wide=True,
    )


def _lead(results: ExperimentResults) -> str:
    counts = Counter(verdict.outcome for verdict in results.verdicts)
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in counts.most_common())
    quick = (
        " This was a quick run: small data, few seeds, short fits. It shows that everything works and is "
        "no basis for conclusions."
        if results.record.quick
        else ""
    )
    evaluated = f" Its claims, on each data set: {outcomes}." if outcomes else ""
    return f"{results.experiment.about}{evaluated}{quick}"


def _claims(verdicts: Sequence[Verdict]) -> Section:
    meaning = (
        "Held: the whole interval is on the claim's side under every measure; in part: under some, and "
        "against it under none; undecided: zero is in every interval; mixed: both ways; did not hold: "
        "against it under some, for it under none. Intervals of metrics: 95 % bootstrap over users and "
        "seeds, 2,000 resamples; of weights and of training time: 95 % t-interval over seeds. With few seeds "
        "the bootstrap knows little of the spread between runs and is too narrow."
    )
    return Section(
        "What was claimed, and what held",
        paragraphs=(meaning,),
        points=tuple(verdict.sentence for verdict in verdicts),
    )


def _benchmark(results: BenchmarkResults, experiment: Experiment) -> Section:
    facts = results.facts
    methods = [column for column in experiment.methods if column in results.columns]
    size = (
        f"{facts.users:,} users, {facts.items:,} items, {facts.events:,} events; {facts.judged_users:,} "
        "users are evaluated, each on the last event."
    )
    stand_in = (
        (f"It stands in for {benchmark_spec(facts.stands_for).title}, to which the paper's numbers belong.",)
        if facts.stands_for not in ("", facts.name)
        else ()
    )
    failures = tuple(f"{c}, seed {s}, failed: {why}" for (c, s), why in results.failures.items())
    return Section(
        facts.title,
        paragraphs=(size, *stand_in, *facts.notes, *failures),
        tables=tuple(table for table in _tables(results, experiment, methods) if table is not None),
        figures=tuple(figures_of(results, experiment)),
    )


def _tables(results: BenchmarkResults, experiment: Experiment, methods: Sequence[str]) -> list[Table | None]:
    if experiment.sweeps or not methods:
        swept = [s for s in experiment.sweeps if any(s.label(v) in results.columns for v in s.values)]
        return [sweep_table(results, sweep) for sweep in swept]
    lifts = lift_table(results, experiment) if experiment.k == 20 else None
    return [
        main_table(results, methods),
        lifts,
        difference_table(results, experiment.pairs),
        further_table(results, methods),
        further_difference_table(results, experiment.pairs),
    ]


def _making(results: ExperimentResults) -> Section:
    record, finished = results.record, sum(len(one.runs) for one in results.benchmarks)
    fits = f"{finished:,} of {len(record.runs):,} fits are finished"
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
            f"{fits}; they took {_spent(results.processor_hours)} of one processor. Seeds {seeds}; the "
            "split and the negatives of the evaluation are the same for all. "
            f"{record.hardware}. {_codes(record)} {tuned}",
        ),
        points=results.experiment.departures,
        commands=(record.command,) if record.command else (),
    )


def _codes(record: Record) -> str:
    """Which versions of the code made the fits."""
    codes = record.codes
    if len(codes) < 2:
        return f"Code {next(iter(codes), record.code)}."
    return f"Code {', '.join(f'{code} ({fits} fits)' for code, fits in codes.items())}."


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
            lines += [to_markdown(table), table.full_caption]
        for figure in section.figures:
            number += figure.svg is not None
            lines += [_linked(figure, number)]
    return "\n\n".join(lines) + "\n"


def _linked(figure: Figure, number: int) -> str:
    return f"![{figure.caption}](figure-{number}.svg)" if figure.svg else figure.caption


def to_json(results: ExperimentResults) -> dict[str, Any]:
    """Every mean, with what it depends on, as plain numbers and texts."""
    numbers = {one.facts.name: _numbers(one) for one in results.benchmarks}
    verdicts = [vars(verdict) for verdict in results.verdicts]
    return {
        "experiment": results.experiment.name,
        "quick": results.record.quick,
        "command": results.record.command,
        "code": results.record.code,
        "codes": results.record.codes,  # how many runs each version of the code has made
        "hardware": results.record.hardware,
        "seeds": list(results.record.seeds),
        "processor_hours": results.processor_hours,
        "benchmarks": numbers,
        "verdicts": [verdict | {"arena": verdict["benchmark"]} for verdict in verdicts],
        "arenas": numbers,  # the key's name before 0.2, which scripts read
        "settings": results.record.settings,
    }


def _numbers(results: BenchmarkResults) -> dict[str, Any]:  # any JSON
    measures = (*results.facts.measures(results.k), *results.facts.further(results.k))
    return {
        "fingerprint": results.facts.fingerprint,
        "notes": list(results.facts.notes),
        "columns": {
            column: {measure.heading: results.values(column, measure) for measure in measures}
            for column in results.columns
        },
    }
