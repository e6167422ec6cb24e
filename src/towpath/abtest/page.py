"""The page about an experiment: the verdict and the paper's two figures, then the numbers."""

import math
from collections.abc import Callable

from towpath.abtest.experiment import Day, Experiment
from towpath.abtest.lifts import Lift
from towpath.abtest.metrics import METRICS
from towpath.reports.bands import BandPoint
from towpath.reports.figures import draw_dots
from towpath.reports.lines import Axes
from towpath.reports.page import Page, Section
from towpath.reports.series import SeriesStyle, draw_series
from towpath.reports.tables import NOTHING, Cell, Table
from towpath.stats.estimate import Estimate
from towpath.stats.spread import scaled

_SEQUENCE = "Intervals are confidence sequences: they hold at every look, so the experiment may stop at any."


def experiment_page(experiment: Experiment) -> Page:
    """The page of this experiment."""
    return Page(
        title="A/B test: " + ", ".join(experiment.arms),
        lead=experiment.verdict,
        sections=(
            _daily(experiment),
            _overall(experiment),
            _numbers(experiment),
            _split(experiment),
        ),
        footer="Made by towpath experiment.",
        wide=True,
    )


def _daily(experiment: Experiment) -> Section:
    """The paper's first figure: the lift of the metric that decides, day by day."""
    title = METRICS[experiment.decides].title
    alone = _series(experiment, lambda day: _exactly(100 * day.that_day))
    so_far = _series(experiment, lambda day: scaled(day.so_far, 100))
    dates = tuple(dict.fromkeys(day.day for day in experiment.days))
    style = SeriesStyle(labels=dates, levels={experiment.control: 0.0})
    axes = Axes("day", f"lift of {title}, %", zero=False)
    captions = (f"{title}: the lift of each day by itself.", f"{title}: the lift so far. {_SEQUENCE}")
    figures = tuple(
        draw_series(rows, axes, caption, style)
        for rows, caption in zip((alone, so_far), captions, strict=True)
        if rows
    )
    text = () if so_far else ("There are too few users or orders yet for an interval.",)
    return Section(f"Daily lift of {title}", text, figures=figures)


def _exactly(value: float) -> Estimate:
    return Estimate(value, value, value, 1, "no interval")


def _series(experiment: Experiment, estimate_of: Callable[[Day], Estimate]) -> dict[str, list[BandPoint]]:
    """The days of each arm whose estimate has both ends; arms without any are left out."""
    dates = list(dict.fromkeys(day.day for day in experiment.days))
    rows: dict[str, list[BandPoint]] = {}
    for day in experiment.days:
        estimate = estimate_of(day)
        if math.isfinite(estimate.mean) and math.isfinite(estimate.width):
            rows.setdefault(day.arm, []).append((dates.index(day.day), estimate))
    return rows


def _overall(experiment: Experiment) -> Section:
    """The paper's second figure: the lifts of all metrics."""
    bounded = [lift for lift in experiment.lifts if math.isfinite(lift.relative.high)]
    figures = tuple(
        draw_dots(
            {METRICS[lift.metric].title: scaled(lift.relative, 100) for lift in bounded if lift.arm == arm},
            axis=f"lift over {experiment.control}, %",
            caption=f"{arm}: lifts of all metrics. {_SEQUENCE}",
            marks={experiment.control: 0.0},
            by_value=False,  # the same order for all arms
        )
        for arm in dict.fromkeys(lift.arm for lift in bounded)
    )
    text = () if figures else ("There are too few users yet for an interval of any metric.",)
    return Section("Overall lifts", text, figures=figures)


def _numbers(experiment: Experiment) -> Section:
    columns = ("metric", "arm", "value", experiment.control, "difference", "lift, %", "p", "p, Holm")
    rows = tuple(_row(lift) for lift in experiment.lifts)
    past = ("What users did before the experiment is used to lower the noise (CUPED).",)
    caption = "p is always valid: below 0.05 at any look is evidence. Holm's also accounts for the arms."
    return Section(
        "The numbers",
        past if experiment.uses_past else (),
        tables=(Table(columns, rows, caption, decimals=3),),
    )


def _row(lift: Lift) -> tuple[Cell, ...]:
    values = tuple(value if math.isfinite(value) else NOTHING for value in lift.values)
    return (
        METRICS[lift.metric].title,
        lift.arm,
        *values,
        interval_cell(lift.absolute),
        interval_cell(scaled(lift.relative, 100)),
        lift.p_value,
        lift.p_holm,
    )


def interval_cell(estimate: Estimate) -> Cell:
    """The estimate, without an interval that is unbounded."""
    if not math.isfinite(estimate.mean):
        return NOTHING
    return estimate if math.isfinite(estimate.width) else estimate.mean


def _split(experiment: Experiment) -> Section:
    check, left_out = experiment.split, experiment.excluded
    rows = tuple(
        (arm, users, f"{share:.1%}")
        for arm, users, share in zip(check.arms, check.users, check.expected, strict=True)
    )
    said = "differs from" if check.mismatch else "agrees with"
    points = (
        f"The split of the users {said} the configured one (always-valid p = {check.p_value:.3g}).",
        f"{left_out.users_in_several_arms:,} users were in several arms and are left out.",
        f"{left_out.requests_without_user:,} requests named no user and are left out.",
        f"{left_out.outcomes_without_request:,} clicks and orders belong to no request of the log.",
    )
    return Section(
        "Users and what was left out",
        points=points,
        tables=(Table(("arm", "users", "should have"), rows),),
    )
