"""Charts as SVG text that stands inside a page and follows its light or dark colours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from towpath.stats.estimate import Estimate

# The page's own text colour; the charts are drawn inline, so they inherit it.
INK = "currentColor"
ACCENT = "var(--accent)"
QUIET = "var(--quiet)"
FONT = "system-ui, sans-serif"
# The reader's font may be wider than the one the chart was measured with: leave room for labels.
PADDING = {"left": 20, "right": 30, "top": 5, "bottom": 5}


@dataclass(frozen=True)
class Figure:
    """A chart with its caption; no chart without the extra `report`, and then the page says how to get it.

    Of small ones that follow each other two stand side by side where there is room.
    """

    svg: str | None
    caption: str
    small: bool = False


def charts_available() -> bool:
    """Whether the extra `report` is installed."""
    return find_spec("altair") is not None and find_spec("vl_convert") is not None


def draw_dots(
    dots: Mapping[str, Estimate],
    *,
    axis: str,
    caption: str,
    marks: Mapping[str, float] | None = None,
    by_value: bool = True,
) -> Figure:
    """One dot with its interval per row; `marks` are values drawn as vertical lines.

    by_value: the best at the top; else in the order in which they are given.
    """
    if not charts_available():
        return Figure(None, caption)
    rows = sorted(dots.items(), key=lambda dot: -dot[1].mean) if by_value else list(dots.items())
    return Figure(to_svg(_dots_chart(rows, axis, marks or {})), caption)


def _dots_chart(
    dots: Sequence[tuple[str, Estimate]], axis: str, marks: Mapping[str, float]
) -> Any:  # altair has no types
    import altair as alt

    order = [name for name, _ in dots]
    rows = alt.InlineData(
        values=[{"name": name, "value": e.mean, "low": e.low, "high": e.high} for name, e in dots]
    )
    ends = [end for _, e in dots for end in (e.low, e.high)] + list(marks.values())
    room = 0.04 * (max(ends) - min(ends) or 1.0)
    scale = alt.Scale(domain=[min(ends) - room, max(ends) + room], nice=False, zero=False)
    x = alt.X("value:Q", title=axis, scale=scale, axis=alt.Axis(tickCount=6, grid=True))
    y = alt.Y("name:N", title=None, sort=order, axis=alt.Axis(ticks=False, domain=False, labelLimit=260))
    base = alt.Chart(rows).encode(y=y)
    spans = base.mark_rule(strokeWidth=2, color=ACCENT).encode(
        x=alt.X("low:Q", title=axis, scale=scale), x2="high:Q"
    )
    points = base.mark_point(size=70, filled=True, opacity=1, color=ACCENT).encode(x=x)
    layers = [*_mark_layers(marks, scale, axis), spans, points]
    return alt.layer(*layers).properties(width=420, height=34 * len(dots) + 10, padding=PADDING)


def _mark_layers(marks: Mapping[str, float], scale: Any, axis: str) -> list[Any]:  # altair has no types
    import altair as alt

    if not marks:
        return []
    base = alt.Chart(alt.InlineData(values=[{"mark": n, "value": v} for n, v in marks.items()])).encode(
        x=alt.X("value:Q", title=axis, scale=scale)
    )
    lines = base.mark_rule(strokeDash=[4, 3], color=QUIET)
    names = base.mark_text(baseline="bottom", dy=-4, color=INK, fontSize=12).encode(
        y=alt.value(0), text="mark:N"
    )
    return [lines, names]


def to_svg(chart: Any) -> str:  # altair has no types
    """The chart in the house style, its colours left to the page."""
    import vl_convert

    styled = chart.configure(background="transparent", font=FONT).configure_view(stroke=None).configure_axis(
        labelColor=INK, titleColor=INK, gridColor=QUIET, gridOpacity=0.25, tickColor=QUIET, domainColor=QUIET,
        labelFontSize=13, titleFontSize=13, titleFontWeight="normal", titlePadding=10,
    ).configure_legend(labelColor=INK, titleColor=INK, labelFontSize=13, symbolSize=85)  # fmt: skip
    return str(vl_convert.vegalite_to_svg(styled.to_dict()))
