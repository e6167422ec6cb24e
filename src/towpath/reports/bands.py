"""Means along a number, with a band around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from towpath.reports.figures import ACCENT, INK, PADDING, QUIET, Figure, charts_available, to_svg
from towpath.reports.lines import Axes, ends_of, mark_layers
from towpath.stats.estimate import Estimate

# A place on the axis across, and the mean there with the ends of the band.
BandPoint = tuple[float, Estimate]


def chart_rows(points: Sequence[BandPoint]) -> list[dict[str, float]]:
    """The points as altair reads them."""
    return [{"x": x, "mean": e.mean, "low": e.low, "high": e.high} for x, e in points]


@dataclass(frozen=True)
class BandStyle:
    """Name and value of a level dashed line; whether the axis across goes in equal ratios."""

    level: tuple[str, float] | None = None
    ratios: bool = False


_PLAIN = BandStyle()


def draw_band(points: Sequence[BandPoint], axes: Axes, caption: str, style: BandStyle = _PLAIN) -> Figure:
    """The means as a line with dots, the ranges as a band around it."""
    if not charts_available():
        return Figure(None, caption, axes.small)
    import altair as alt

    ends = [end for _, e in points for end in (e.low, e.mean, e.high)]
    ends += [style.level[1]] if style.level else []
    y = alt.Scale(domain=list(ends_of(ends, zero=axes.zero)), nice=False, zero=False)
    layers = [*_level_layers(style, y, axes), *_band_layers(points, axes, y, ratios=style.ratios)]
    width, height = axes.size
    padding = {**PADDING, "right": axes.room} if style.level else PADDING
    return Figure(
        to_svg(alt.layer(*layers).properties(width=width, height=height, padding=padding)),
        caption,
        axes.small,
    )


def _band_layers(points: Sequence[BandPoint], axes: Axes, scale: Any, *, ratios: bool) -> list[Any]:
    """Band, line and dots; altair has no types."""
    import altair as alt

    across = alt.Scale(type="log" if ratios else "linear", nice=False, zero=False)
    marks = {"values": powers_of_ten([x for x, _ in points])} if ratios else {"tickCount": 5}
    x = alt.X("x:Q", title=axes.x, scale=across, axis=alt.Axis(grid=False, format=",~r", **marks))
    y = alt.Y("mean:Q", title=axes.y, scale=scale, axis=alt.Axis(tickCount=5))
    base = alt.Chart(alt.InlineData(values=chart_rows(points))).encode(x=x)
    return [
        *mark_layers(axes, x),
        base.mark_area(opacity=0.18, color=ACCENT).encode(
            y=alt.Y("low:Q", scale=scale, title=axes.y), y2="high:Q"
        ),
        base.mark_line(color=ACCENT, strokeWidth=2).encode(y=y),
        base.mark_point(color=ACCENT, filled=True, size=28, opacity=1).encode(y=y),
    ]


def powers_of_ten(places: Sequence[float]) -> list[float]:
    """Those among the places, or both ends if there is at most one.

    >>> powers_of_ten([1, 37, 575]), powers_of_ten([20, 30])
    ([1, 10, 100], [20, 30])
    """
    low, high = min(places), max(places)
    inside = [10**power for power in range(-9, 13) if low <= 10**power <= high]
    return inside if len(inside) > 1 else [low, high]


def _level_layers(style: BandStyle, scale: Any, axes: Axes) -> list[Any]:  # altair has no types
    import altair as alt

    if style.level is None:
        return []
    rows = alt.InlineData(values=[{"name": style.level[0], "mean": style.level[1]}])
    base = alt.Chart(rows).encode(y=alt.Y("mean:Q", scale=scale, title=axes.y))
    name = base.mark_text(align="left", dx=8, color=INK, fontSize=12)
    return [
        base.mark_rule(strokeDash=[4, 3], color=QUIET),
        name.encode(x=alt.value(axes.size[0]), text="name:N"),
    ]
