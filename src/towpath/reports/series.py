"""Several series of means with their bands in one chart, labelled at their ends."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from towpath.reports.bands import BandPoint, chart_rows
from towpath.reports.figures import ACCENT, INK, PADDING, QUIET, Figure, charts_available, to_svg
from towpath.reports.lines import Axes, above, ends_of, spread

_LABEL = 17.0  # height of a name in pixels
_STYLES = ((ACCENT, [1, 0]), (INK, [5, 3]), (QUIET, [1, 0]), (QUIET, [2, 3]))
# More points than this are a line alone.
_DOTS = 24

Series = Mapping[str, Sequence[BandPoint]]


@dataclass(frozen=True)
class SeriesStyle:
    """What else is drawn.

    `labels` stand at the places 0, 1, 2 … of the axis across, for values that are not in proportion; `levels`
    are names and values of level dashed lines. `from_zero` starts the axis across at zero.
    """

    labels: tuple[str, ...] = ()
    levels: Mapping[str, float] = field(default_factory=dict)
    from_zero: bool = False


_PLAIN = SeriesStyle()


def draw_series(series: Series, axes: Axes, caption: str, style: SeriesStyle = _PLAIN) -> Figure:
    """A line with dots through the means of each row, and a band from low to high around it.

    A row without a name is not labelled; it is the only one, and the axis says what it is.
    """
    if not charts_available():
        return Figure(None, caption, axes.small)
    import altair as alt

    ends = [end for points in series.values() for _, e in points for end in (e.low, e.mean, e.high)]
    low, high = ends_of([*ends, *style.levels.values()], zero=axes.zero)
    scales = _scales(axes, style, (low, high))
    gap = _LABEL / axes.size[1] * (high - low)
    named = [*(points[-1][1].mean for points in series.values()), *style.levels.values()]
    heights = above(spread(named, gap), low + gap / 4)
    layers = [*_levels(style, heights[len(series) :], axes, scales)]
    for place, (name, points) in enumerate(series.items()):
        layers += _row(points, scales, _STYLES[place % len(_STYLES)])
        layers += _name(name, (points[-1][0], heights[place]), scales) if name else []
    width, height = axes.size
    padding = {**PADDING, "right": axes.room + 40}
    chart = alt.layer(*layers).properties(width=width, height=height, padding=padding)
    return Figure(to_svg(chart), caption, axes.small)


Scales = tuple[Any, Any, Any]  # across, upward at the mean, upward at the low end; altair has no types


def _scales(axes: Axes, style: SeriesStyle, ends: tuple[float, float]) -> Scales:
    """The axes that all layers share."""
    import altair as alt

    if style.labels:
        last = len(style.labels) - 1
        texts = f"{json.dumps(style.labels)}[datum.value]"
        marks = alt.Axis(values=list(range(last + 1)), labelExpr=texts, grid=False, labelOverlap=True)
        across = alt.Scale(domain=[-0.3, last + 0.3], nice=False, zero=False)
    else:
        marks = alt.Axis(grid=False, tickCount=5, format=",~r", labelOverlap=True)
        across = alt.Scale(nice=False, zero=style.from_zero)
    x = alt.X("x:Q", title=axes.x, scale=across, axis=marks)
    upward = alt.Scale(domain=list(ends), nice=False, zero=False)
    mean = alt.Y("mean:Q", title=axes.y, scale=upward, axis=alt.Axis(tickCount=5))
    return x, mean, alt.Y("low:Q", title=axes.y, scale=upward)


def _row(points: Sequence[BandPoint], scales: Scales, look: tuple[str, list[int]]) -> list[Any]:
    """Band, line and dots of one row; altair has no types."""
    import altair as alt

    (x, y, low), (colour, dash) = scales, look
    base = alt.Chart(alt.InlineData(values=chart_rows(points))).encode(x=x)
    layers = [
        base.mark_area(opacity=0.16, color=colour).encode(y=low, y2="high:Q"),
        base.mark_line(color=colour, strokeWidth=2, strokeDash=dash).encode(y=y),
    ]
    if len(points) <= _DOTS:
        layers.append(base.mark_point(color=colour, filled=True, size=28, opacity=1).encode(y=y))
    return layers


def _name(name: str, place: tuple[float, float], scales: Scales) -> list[Any]:
    import altair as alt

    rows = alt.InlineData(values=[{"name": name, "x": place[0], "mean": place[1]}])
    text = alt.Chart(rows).mark_text(align="left", dx=8, color=INK, fontSize=12)
    return [text.encode(x=scales[0], y=scales[1], text="name:N")]


def _levels(style: SeriesStyle, heights: Sequence[float], axes: Axes, scales: Scales) -> list[Any]:
    """The dashed lines, and their names at these heights, so that they cover no other name."""
    import altair as alt

    if not style.levels:
        return []
    lines = alt.InlineData(values=[{"mean": value} for value in style.levels.values()])
    names = alt.InlineData(
        values=[{"name": name, "mean": at} for name, at in zip(style.levels, heights, strict=True)]
    )
    text = alt.Chart(names).mark_text(align="left", dx=8, color=INK, fontSize=12)
    return [
        alt.Chart(lines).mark_rule(strokeDash=[4, 3], color=QUIET).encode(y=scales[1]),
        text.encode(x=alt.value(axes.size[0]), y=scales[1], text="name:N"),
    ]
