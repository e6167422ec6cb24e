"""Lines that are told apart by their names at their ends, and by dashes rather than colours alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from towpath.reports.figures import ACCENT, INK, PADDING, QUIET, Figure, charts_available, to_svg

_WIDTH, _HEIGHT = 430, 230
_LABEL = 0.075  # height of a name as a share of the highest value
_STYLES = ((ACCENT, [1, 0]), (INK, [1, 0]), (QUIET, [1, 0]), (QUIET, [2, 3]), (INK, [6, 4]), (ACCENT, [6, 4]))


@dataclass(frozen=True)
class Axes:
    """What the two directions mean; `whole` puts marks at whole numbers only."""

    x: str
    y: str
    whole: bool = True


def draw_lines(lines: Mapping[str, Sequence[tuple[float, float]]], axes: Axes, caption: str) -> Figure:
    """One line for each name through its points (x, y), from zero up."""
    if not charts_available():
        return Figure(None, caption)
    import altair as alt

    top = max(y for points in lines.values() for _, y in points)
    heights = spread([points[-1][1] for points in lines.values()], _LABEL * top)
    layers = [
        layer
        for place, (name, points) in enumerate(lines.items())
        for layer in _line(place, points, axes, (name, points[-1][0], heights[place]))
    ]
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, padding={**PADDING, "right": 90})
    return Figure(to_svg(chart), caption)


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """The same heights in the same order, moved apart until none is nearer to another than the gap.

    >>> spread([1.0, 1.0, 5.0], 1.0)
    [0.5, 1.5, 5.0]
    """
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    moved = [heights[place] for place in order]
    for _ in range(100):  # each pass moves what is too near apart by as much to either side
        for lower in range(len(moved) - 1):
            missing = gap - (moved[lower + 1] - moved[lower])
            if missing > 1e-9:
                moved[lower] -= missing / 2
                moved[lower + 1] += missing / 2
    return [moved[order.index(place)] for place in range(len(heights))]


def _line(
    place: int, points: Sequence[tuple[float, float]], axes: Axes, label: tuple[str, float, float]
) -> list[Any]:  # altair has no types
    import altair as alt

    colour, dash = _STYLES[place % len(_STYLES)]
    ticks = {"values": sorted({x for x, _ in points}), "format": "d"} if axes.whole else {"tickCount": 6}
    x = alt.X(
        "x:Q", title=axes.x, scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(grid=False, **ticks)
    )
    y = alt.Y("y:Q", title=axes.y, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    base = alt.Chart(alt.InlineData(values=[{"x": x, "y": y} for x, y in points])).encode(x=x, y=y)
    name = alt.Chart(alt.InlineData(values=[dict(zip(("name", "x", "y"), label, strict=True))]))
    return [
        base.mark_line(color=colour, strokeDash=dash, strokeWidth=2, point=axes.whole and {"color": colour}),
        name.mark_text(align="left", dx=8, color=INK, fontSize=12).encode(x=x, y=y, text="name:N"),
    ]
