"""Figures of sweeps: a panel for each protocol, since numbers under two of them do not compare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from towpath.experiments.sweep import Point, SweepResult
from towpath.reports.figures import ACCENT, INK, PADDING, QUIET, Figure, charts_available, to_svg

# Beyond this ratio between the largest and the smallest value an axis in equal steps would hide the small.
_LOGARITHMIC_FROM = 20
_WIDTH, _HEIGHT = 300, 210
SPREAD = "one standard deviation between seeds to either side"


@dataclass(frozen=True)
class Panel:
    """One curve, and values for reference as horizontal lines."""

    title: str
    points: Sequence[Point]
    references: Mapping[str, float]


def draw_sweep(sweep: SweepResult, metric: str, name: str) -> Figure:
    """A metric, called `name`, over the values of the setting, side by side for every protocol."""
    dashed = f"; dashed: {', '.join(sweep.references)}." if sweep.references else "."
    caption = f"Dots are means over seeds, the band reaches {SPREAD}{dashed}"
    if sweep.comparison.seeds == 1:
        caption = f"Dots are from one seed, so nothing is known of the spread{dashed}"
    if not charts_available():
        return Figure(None, caption)
    import altair as alt

    axis = f"{name}@{sweep.comparison.k}"
    panels = [
        _panel(Panel(p, sweep.points(p, metric), sweep.reference(p, metric)), sweep.setting, axis)
        for p in sweep.protocols
    ]
    return Figure(to_svg(alt.concat(*panels, columns=2, spacing=40, padding=PADDING)), caption)


def _panel(panel: Panel, setting: str, axis: str) -> Any:  # altair has no types
    import altair as alt

    rows = alt.InlineData(
        values=[
            {"x": _place(value), "mean": 100 * e.mean, "low": 100 * e.low, "high": 100 * e.high}
            for value, e in panel.points
        ]
    )
    ends = [100 * end for _, e in panel.points for end in (e.low, e.high)]
    ends += [100 * value for value in panel.references.values()]
    room = 0.08 * (max(ends) - min(ends) or 1.0)
    scale = alt.Scale(domain=[min(ends) - room, max(ends) + room], nice=False, zero=False)
    title = f"{axis} × 100"
    y = alt.Y("mean:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5, grid=True))
    base = alt.Chart(rows).encode(x=_across(panel.points, setting))
    band = base.mark_area(opacity=0.18, color=ACCENT).encode(
        y=alt.Y("low:Q", scale=scale, title=title), y2="high:Q"
    )
    line = base.mark_line(color=ACCENT, strokeWidth=2).encode(y=y)
    dots = base.mark_point(color=ACCENT, filled=True, size=55, opacity=1).encode(y=y)
    layers = [*_reference_layers(panel.references, scale, title), band, line, dots]
    return alt.layer(*layers).properties(
        width=_WIDTH, height=_HEIGHT, title=alt.TitleParams(panel.title, color=INK, fontWeight="normal")
    )


def _across(points: Sequence[Point], setting: str) -> Any:  # altair has no types
    """The axis of the setting: in proportion where values are numbers, in their order otherwise."""
    import altair as alt

    numbers = _numbers(points)
    if numbers is None:
        order = [_place(value) for value, _ in points]
        return alt.X("x:O", title=setting, sort=order, axis=alt.Axis(labelAngle=0, grid=False))
    steep = min(numbers) > 0 and max(numbers) >= _LOGARITHMIC_FROM * min(numbers)
    scale = alt.Scale(type="log" if steep else "linear", nice=False, zero=False, padding=12)
    marks = alt.Axis(values=numbers, format=",~r", grid=False, labelOverlap=True)
    return alt.X("x:Q", title=setting, scale=scale, axis=marks)


def _numbers(points: Sequence[Point]) -> list[float] | None:
    """All values as numbers; None if one is none."""
    values = [value for value, _ in points]
    numeric = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return numeric if len(numeric) == len(values) else None


def _place(value: Any) -> Any:  # of a setting
    return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _reference_layers(references: Mapping[str, float], scale: Any, title: str) -> list[Any]:
    import altair as alt

    if not references:
        return []
    rows = [{"name": name, "mean": 100 * value} for name, value in references.items()]
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=alt.Y("mean:Q", scale=scale, title=title))
    lines = base.mark_rule(strokeDash=[4, 3], color=QUIET)
    names = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=INK, fontSize=12).encode(
        x=alt.value(0), text="name:N"
    )
    return [lines, names]
