"""towpath experiment: what an A/B test says so far."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from towpath.cli.output import Listing, Output
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.abtest.experiment import Experiment

LogPlace = Annotated[
    str, typer.Argument(metavar="LOG", help="The --log of towpath serve: a folder or postgresql://…")
]


@dataclass(frozen=True)
class ExperimentOptions:
    """Which part of the log is looked at, and how."""

    metric: Annotated[
        list[str] | None,
        typer.Option(help="Only this metric; repeat for more. The first one decides.", show_default=False),
    ] = None
    control: Annotated[
        str | None, typer.Option(help="The arm to compare with; by default the one served first.")
    ] = None
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="When the experiment began (ISO 8601, UTC unless it says otherwise); by default when arms "
            "or weights last changed. What users did before is used to lower the noise.",
        ),
    ] = None
    visit_minutes: Annotated[
        float,
        typer.Option(min=0, max=1e6, help="A visit ends when a user has asked for nothing for so long."),
    ] = 30.0
    expected_users: Annotated[
        int,
        typer.Option(
            min=100, help="Users in two arms at which intervals are tightest; valid whatever it is."
        ),
    ] = 5_000
    alpha: Annotated[float, typer.Option(help="The share of experiments that may err.")] = 0.05
    out: Annotated[Path | None, typer.Option(metavar="PAGE", help="Write an HTML page as well.")] = None


def experiment(log: LogPlace, options: ExperimentOptions, output: Output) -> None:
    """Say what an A/B test shows so far: lifts whose intervals hold at every look, and a verdict."""
    from towpath.abtest.experiment import run_experiment
    from towpath.abtest.from_log import Window, experiment_log
    from towpath.abtest.metrics import metrics_named
    from towpath.abtest.sequences import Sequence
    from towpath.files import refuse_unwritable
    from towpath.serving.exposure_log.read import read_log

    if not 0 < options.alpha < 1:
        raise ConfigError(f"--alpha must lie between 0 and 1, and {options.alpha:g} was given.")
    if options.out is not None:
        refuse_unwritable(options.out)
    metrics = metrics_named(options.metric)
    window = Window(_microseconds(options.since), options.visit_minutes)
    with output.working(f"Reading {log}"):
        found = experiment_log(read_log(log), window)
        result = run_experiment(
            found, metrics, Sequence(options.alpha, options.expected_users), options.control
        )
    _show(result, options.out, output)


def _show(result: "Experiment", page: Path | None, output: Output) -> None:
    if page is not None:
        from towpath.abtest.page import experiment_page
        from towpath.reports.page import write_page

        write_page(experiment_page(result), page)
    told = result.to_json() | ({} if page is None else {"page": str(page)})
    rows = [
        (one["metric"], one["arm"], _range(one["absolute"], 1), _range(one["relative"], 100), one["p_holm"])
        for one in told["metrics"]
    ]
    columns = ("metric", "arm", "difference", "lift, %", "p (Holm)")
    output.show(told, Listing(f"Against {result.control}: {result.verdict}", columns, rows))
    if page is not None:
        output.say(f"The page is {page}")


def _range(ends: list[float], times: float) -> str:
    """An estimate and its interval; without one, while there are too few users for it."""
    value, low, high = (times * end for end in ends)
    return f"{value:.4g} ({low:.4g} to {high:.4g})" if math.isfinite(high - low) else f"{value:.4g}"


def _microseconds(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(
            f"--since takes a date or time such as 2026-03-01 or 2026-03-01T08:00, and {text!r} was given."
        ) from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6)
