"""towpath diagnose: what the log can vouch for of what a run would show."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from towpath.cli.options import HowMany, RunFolder
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import use_threads

if TYPE_CHECKING:
    from towpath.diagnostics.diagnose import Diagnosis

_LOG = "Another log"


@dataclass(frozen=True)
class DiagnoseOptions:
    """Which rows are looked at, and where the page goes."""

    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Impressions to look at instead of the run's held-out parts.",
            rich_help_panel=_LOG,
        ),
    ] = None
    user_col: Annotated[str | None, typer.Option(help="Its user ids.", rich_help_panel=_LOG)] = None
    item_col: Annotated[str | None, typer.Option(help="Its item ids.", rich_help_panel=_LOG)] = None
    label_col: Annotated[str | None, typer.Option(help="Its clicks, 0 or 1.", rich_help_panel=_LOG)] = None
    position_col: Annotated[str | None, typer.Option(help="Its positions.", rich_help_panel=_LOG)] = None
    propensity_col: Annotated[
        str | None, typer.Option(help="Its chances of what was shown.", rich_help_panel=_LOG)
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The page; diagnosis.html in RUN by default.", show_default=False),
    ] = None
    k: HowMany = 10


def diagnose(run: RunFolder, options: DiagnoseOptions, output: Output) -> None:
    """Say how much of what a run would show the log has seen, and what follows; writes a page."""
    use_threads(1)
    from towpath.bandit.log import LogColumns
    from towpath.files import refuse_unwritable
    from towpath.reports.diagnosis_page import diagnosis_page
    from towpath.reports.page import write_page
    from towpath.serving.diagnosis import diagnose_run
    from towpath.serving.run import Run

    opened = Run(run)
    page = options.out or run / "diagnosis.html"
    refuse_unwritable(page)
    columns = LogColumns(
        options.item_col, options.label_col, options.position_col, options.propensity_col, options.user_col
    )
    with output.working(f"Looking at {run}"):
        found = diagnose_run(opened, k=options.k, log=options.log, columns=columns)
        write_page(diagnosis_page(found, run.resolve().name), page)
    _show(found, opened.artifact.about.get("dial", {}), page, output)


def _show(found: "Diagnosis", dial: dict[str, float], page: Path, output: Output) -> None:
    """Say what was found; `dial` is where `fit` says that the lists stand, empty where it could not."""
    from towpath.reports.diagnosis_page import level_names

    for remark in found.remarks:
        output.say(f"Note: {remark}.")
    for warning in found.warnings:
        output.say(f"Warning: {warning}")
    shares = found.evidence.shares()
    clicks, d = found.evidence.expected_clicks(), found.distances
    rows = [
        *((name, f"{shares[level]:.1%}") for level, name in level_names(found.complete).items()),
        ("clicks per slot", f"{clicks.low:.4f} to {clicks.high:.4f}"),
        ("clicks per slot, sure", f"{clicks.sure[0]:.4f} to {clicks.sure[1]:.4f}"),
        ("effective sample size", "no propensities" if found.ess_share is None else f"{found.ess_share:.2%}"),
        (
            "distance to the log",
            f"{d.log_to_recommended:.3f} (noise {d.log_to_itself:.3f}, "
            f"critic {d.critic['log_to_recommended']:.3f})",
        ),
    ]
    if dial:
        rows += [
            ("shown before", f"{dial['shown_share']:.1%}"),
            ("likeness to the log", f"{dial['likeness']:.2f} (0: random pairs, 1: pairs of the log)"),
        ]
    title = f"Share of {found.evidence.slots:,} slots of {found.users:,} users; evidence: {found.period}"
    output.show(
        found.to_json() | {"page": str(page)} | ({"dial": dial} if dial else {}),
        Listing(title, ("", ""), rows),
    )
    output.say(f"Written: {page}")
