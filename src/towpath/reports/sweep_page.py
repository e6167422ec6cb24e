"""The page about a sweep: what was varied, how, and the metrics."""

import json
from pathlib import Path

from towpath.experiments.sweep import SweepResult
from towpath.files import write_text
from towpath.reports.curves import draw_sweep
from towpath.reports.figures import ACCENT, INK, QUIET
from towpath.reports.page import Page, Section, write_page
from towpath.reports.tables import Cell, Table, to_csv
from towpath.stats.spread import scaled

# The rest is in sweep.json.
METRICS = {"hit": "Hit", "ndcg": "NDCG"}


def write_sweep(sweep: SweepResult, data: str, folder: Path) -> list[Path]:
    """The paths of what was written: the page, the numbers as JSON and CSV, and each figure by itself."""
    write_page(sweep_page(sweep, data), folder / "index.html")
    texts = {
        "sweep.json": json.dumps(sweep.to_json(), indent=2) + "\n",
        "sweep.csv": to_csv(sweep_point_table(sweep)),
    }
    for metric in METRICS:
        svg = draw_sweep(sweep, metric, METRICS[metric]).svg
        if svg is not None:
            texts[f"{metric}.svg"] = standalone_svg(svg)
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in ("index.html", *texts)]


def sweep_page(sweep: SweepResult, data: str) -> Page:
    """The figures of all metrics, then the numbers."""
    numbers = Section("The numbers", tables=(sweep_point_table(sweep),))
    figures = tuple(
        Section(f"{name}@{sweep.comparison.k}", figures=(draw_sweep(sweep, metric, name),))
        for metric, name in METRICS.items()
    )
    return Page(
        title=f"{sweep.recipe.method_name}: the setting {sweep.setting}",
        lead=_lead(sweep, data),
        sections=(*figures, numbers),
        footer="Made by towpath sweep. All values share the split, the seeds and the evaluation's negatives.",
    )


def sweep_point_table(sweep: SweepResult) -> Table:
    """One row for each value and each reference, one column for each protocol and metric, times 100."""
    ways = [(protocol, metric) for protocol in sweep.protocols for metric in METRICS]
    names = (f"{protocol} {METRICS[metric]}@{sweep.comparison.k}" for protocol, metric in ways)
    rows: list[tuple[Cell, ...]] = [
        (str(value), *(scaled(sweep.points(*way)[at][1], 100) for way in ways))
        for at, value in enumerate(sweep.values)
    ]
    rows += [(name, *(100 * sweep.reference(*way)[name] for way in ways)) for name in sweep.references]
    caption = "Times 100."
    if sweep.comparison.seeds == 1:
        caption = "From one seed, times 100."
    return Table((sweep.setting, *names), tuple(rows), caption, decimals=2)


def standalone_svg(svg: str) -> str:
    """A figure for a file of its own, with the colours that a page would have given it."""
    for name, colour in {ACCENT: "#0b6e8a", QUIET: "#737a82", INK: "#1f2328"}.items():
        svg = svg.replace(name, colour)
    return svg


def _lead(sweep: SweepResult, data: str) -> str:
    comparison = sweep.comparison
    seeds = "one seed" if comparison.seeds == 1 else f"{comparison.seeds} seeds"
    return (
        f"The model {sweep.recipe.model_name} was trained by the method {sweep.recipe.method_name} on {data} "
        f"with {len(sweep.values)} values of {sweep.setting} and {seeds} each, and evaluated on the "
        f"{comparison.on} events of {comparison.users:,} users."
    )
