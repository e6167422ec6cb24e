"""The page about a curve: what was varied, how, and what came of it."""

import json
from pathlib import Path

from towpath.experiments.sweep import SweepResult
from towpath.files import write_text
from towpath.reports.curves import SPREAD, draw_sweep
from towpath.reports.figures import ACCENT, INK, QUIET
from towpath.reports.page import Page, Section, write_page
from towpath.reports.tables import Cell, Interval, Table, to_csv

# The rest is in curve.json.
METRICS = {"hit": "Hit", "ndcg": "NDCG"}


def write_sweep(curve: SweepResult, data: str, folder: Path) -> list[Path]:
    """The paths of what was written: the page, the numbers as JSON and CSV, and each figure by itself."""
    write_page(sweep_page(curve, data), folder / "index.html")
    texts = {
        "curve.json": json.dumps(curve.to_json(), indent=2) + "\n",
        "curve.csv": to_csv(sweep_point_table(curve)),
    }
    for metric in METRICS:
        svg = draw_sweep(curve, metric, METRICS[metric]).svg
        if svg is not None:
            texts[f"{metric}.svg"] = standalone_svg(svg)
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in ("index.html", *texts)]


def sweep_page(curve: SweepResult, data: str) -> Page:
    """The figures of all metrics, then the numbers."""
    numbers = Section("The numbers", tables=(sweep_point_table(curve),))
    figures = tuple(
        Section(f"{name}@{curve.comparison.k}", figures=(draw_sweep(curve, metric, name),))
        for metric, name in METRICS.items()
    )
    return Page(
        title=f"{curve.recipe.method_name}: what {curve.setting} does",
        lead=_lead(curve, data),
        sections=(*figures, numbers),
        footer="Made by towpath sweep. All values share the split, the seeds and the evaluation's negatives.",
    )


def sweep_point_table(curve: SweepResult) -> Table:
    """One row for each value and each reference, one column for each protocol and metric, times 100."""
    ways = [(protocol, metric) for protocol in curve.protocols for metric in METRICS]
    names = (f"{protocol} {METRICS[metric]}@{curve.comparison.k}" for protocol, metric in ways)
    rows: list[tuple[Cell, ...]] = [
        (str(value), *(_interval(curve, at, way) for way in ways)) for at, value in enumerate(curve.values)
    ]
    rows += [(name, *(100 * curve.reference(*way)[name] for way in ways)) for name in curve.references]
    caption = f"Means over seeds times 100, in brackets {SPREAD}."
    if curve.comparison.seeds == 1:
        caption = "From one seed, times 100."
    return Table((curve.setting, *names), tuple(rows), caption, decimals=2)


def standalone_svg(svg: str) -> str:
    """A figure for a file of its own, with the colours that a page would have given it."""
    for name, colour in {ACCENT: "#0b6e8a", QUIET: "#737a82", INK: "#1f2328"}.items():
        svg = svg.replace(name, colour)
    return svg


def _interval(curve: SweepResult, at: int, way: tuple[str, str]) -> Cell:
    point = curve.points(*way)[at]
    if curve.comparison.seeds == 1:
        return 100 * point.mean
    return Interval(100 * point.mean, 100 * point.low, 100 * point.high)


def _lead(curve: SweepResult, data: str) -> str:
    found = curve.comparison
    seeds = "one seed" if found.seeds == 1 else f"{found.seeds} seeds"
    return (
        f"The model {curve.recipe.model_name} was trained by the method {curve.recipe.method_name} on {data} "
        f"with {len(curve.values)} values of {curve.setting} and {seeds} each, and evaluated on the "
        f"{found.on} events of {found.users:,} users."
    )
