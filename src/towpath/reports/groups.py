"""The same few values of several things, row by row, distinguished by colour and shape."""

from collections.abc import Mapping
from typing import Any

from towpath.reports.figures import ACCENT, INK, PADDING, QUIET, Figure, charts_available, to_svg

_COLOURS = (ACCENT, INK, QUIET, ACCENT, INK, QUIET)
_SHAPES = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down")


def draw_groups(rows: Mapping[str, Mapping[str, float]], axis: str, caption: str) -> Figure:
    """A row for each name, in their order, with a mark for each thing's value in it; from zero on."""
    if not charts_available():
        return Figure(None, caption)
    return Figure(to_svg(_chart(rows, axis)), caption)


def _chart(rows: Mapping[str, Mapping[str, float]], axis: str) -> Any:  # altair has no types
    import altair as alt

    things = list(dict.fromkeys(thing for values in rows.values() for thing in values))
    flat = [{"row": r, "thing": t, "value": v} for r, values in rows.items() for t, v in values.items()]
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1, labelLimit=300, columnPadding=16)
    colour = alt.Scale(domain=things, range=list(_COLOURS[: len(things)]))
    shape = alt.Scale(domain=things, range=list(_SHAPES[: len(things)]))
    names = alt.Axis(ticks=False, domain=False, labelPadding=12, grid=True, tickBand="extent")
    base = alt.Chart(alt.InlineData(values=flat)).encode(
        y=alt.Y("row:N", title=None, sort=list(rows), axis=names),
        # Each thing on a line of its own within the row, so that equal values do not hide each other.
        yOffset=alt.YOffset("thing:N", sort=things),
        x=alt.X("value:Q", title=axis, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6)),
    )
    marks = base.mark_point(filled=True, size=60, opacity=1).encode(
        color=alt.Color("thing:N", scale=colour, legend=legend),
        shape=alt.Shape("thing:N", scale=shape, legend=legend),
    )
    return marks.properties(width=360, height=(13 * len(things) + 12) * len(rows), padding=PADDING)
