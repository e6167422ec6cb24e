"""Line charts: labelled at the ends of the lines, distinguished by dashes and not by colour alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from towpath.reports.figures import ACCENT, INK, PADDING, QUIET, Figure, charts_available, to_svg

_LABEL = 17.0  # height of a name in pixels
SOLID, DOTTED, DASHED = (1, 0), (2, 3), (6, 4)
_STYLES = ((ACCENT, SOLID), (INK, SOLID), (QUIET, SOLID), (QUIET, DOTTED), (INK, DASHED), (ACCENT, DASHED))
# More points than this are drawn as a line alone, and not each gets a mark on the axis.
_DOTS = 10

Points = Sequence[tuple[float, float]]
Style = tuple[str, tuple[int, int]]  # the colour of a line and its dashes


@dataclass(frozen=True)
class Axes:
    """What the two directions mean, and how they are drawn.

    `whole` puts marks at whole numbers only; `zero` starts the upward axis at zero; `mark` is the name and
    the place of a dashed upright line; a `small` figure leaves room for another next to it.
    """

    x: str
    y: str
    whole: bool = True
    zero: bool = True
    mark: tuple[str, float] | None = None
    small: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of what lies between the axes."""
        return (210, 150) if self.small else (430, 230)

    @property
    def room(self) -> int:
        """Space to the right of names: the reader's font may be wider than the one they were measured in."""
        return 24 if self.small else 60


def draw_lines(
    lines: Mapping[str, Points], axes: Axes, caption: str, styles: Mapping[str, Style] | None = None
) -> Figure:
    """One line for each name through its points (x, y); names without a style get one by their place."""
    if not charts_available():
        return Figure(None, caption, axes.small)
    import altair as alt

    low, high = ends_of([y for points in lines.values() for _, y in points], zero=axes.zero)
    gap = _LABEL / axes.size[1] * (high - low)
    heights = above(spread([points[-1][1] for points in lines.values()], gap), low + gap / 4)
    scales = _scales(lines, axes, (low, high))
    layers = mark_layers(axes, scales[0])
    for place, (name, points) in enumerate(lines.items()):
        style = (styles or {}).get(name, _STYLES[place % len(_STYLES)])
        layers += _line(style, points, scales, (name, points[-1][0], heights[place]))
    width, height = axes.size
    padding = {**PADDING, "right": axes.room}
    chart = alt.layer(*layers).properties(width=width, height=height, padding=padding)
    return Figure(to_svg(chart), caption, axes.small)


def ends_of(values: Sequence[float], *, zero: bool) -> tuple[float, float]:
    """Where an axis begins and ends that holds all values with a little air.

    >>> ends_of([1.0, 3.0], zero=True), ends_of([2.0, 2.0], zero=False)
    ((0.0, 3.18), (1.88, 2.12))
    """
    low, high = (min(0.0, *values), max(0.0, *values)) if zero else (min(values), max(values))
    air = max(0.06 * (high - low or abs(high) or 1.0), 1e-9)
    return low - air * (low < 0 or not zero), high + air


def whole_marks(places: Sequence[float], most: int = 7) -> list[int]:
    """The places themselves if there are few of them, else whole numbers in steps of 1, 2 or 5.

    >>> whole_marks([1, 2, 3]), whole_marks(range(1, 43))
    ([1, 2, 3], [10, 20, 30, 40])
    """
    distinct = sorted({round(place) for place in places})
    if len(distinct) <= most:
        return distinct
    steps = (digit * 10**power for power in range(9) for digit in (1, 2, 5))
    step = next(step for step in steps if (distinct[-1] - distinct[0]) / step < most)
    return [at for at in range(distinct[0], distinct[-1] + 1) if at % step == 0]


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


def above(heights: Sequence[float], floor: float) -> list[float]:
    """The same heights, all moved up together if one would lie below the floor."""
    short = max(0.0, floor - min(heights))
    return [height + short for height in heights]


def _scales(lines: Mapping[str, Points], axes: Axes, ends: tuple[float, float]) -> tuple[Any, Any]:
    """The two axes of all layers; altair has no types."""
    import altair as alt

    places = [x for points in lines.values() for x, _ in points]
    marks = {"values": whole_marks(places), "format": "d"} if axes.whole else {"tickCount": 6}
    x = alt.X(
        "x:Q", title=axes.x, scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(grid=False, **marks)
    )
    scale = alt.Scale(domain=list(ends), nice=False, zero=False)
    return x, alt.Y("y:Q", title=axes.y, scale=scale, axis=alt.Axis(tickCount=5))


def _line(
    style: Style, points: Points, scales: tuple[Any, Any], label: tuple[str, float, float]
) -> list[Any]:  # altair has no types
    import altair as alt

    colour, dash = style
    x, y = scales
    dots = len(points) <= _DOTS and {"color": colour}
    base = alt.Chart(alt.InlineData(values=[{"x": x, "y": y} for x, y in points])).encode(x=x, y=y)
    name = alt.Chart(alt.InlineData(values=[dict(zip(("name", "x", "y"), label, strict=True))]))
    return [
        base.mark_line(color=colour, strokeDash=list(dash), strokeWidth=2, point=dots),
        name.mark_text(align="left", dx=8, color=INK, fontSize=12).encode(x=x, y=y, text="name:N"),
    ]


def mark_layers(axes: Axes, x: Any) -> list[Any]:  # altair has no types
    """The dashed upright line and its name, on the axis `x`; nothing if there is none."""
    import altair as alt

    if axes.mark is None:
        return []
    name, place = axes.mark
    base = alt.Chart(alt.InlineData(values=[{"x": place, "mark": name}])).encode(x=x)
    text = base.mark_text(baseline="bottom", dy=-4, color=INK, fontSize=12)
    return [
        base.mark_rule(strokeDash=[4, 3], color=QUIET),
        text.encode(y=alt.value(0), text="mark:N"),
    ]
