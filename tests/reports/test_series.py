"""Rows of means in one chart: names, axes and levels are in it, and nothing is needed to show it."""

import re

from towpath.reports.lines import Axes
from towpath.reports.series import SeriesStyle, draw_series
from towpath.stats.spread import mean_and_deviation

POINTS = [(float(x), mean_and_deviation(10.0 + x, 1.0, n=3)) for x in range(3)]
LOWER = [(float(x), mean_and_deviation(5.0, 1.0, n=3)) for x in range(3)]
AXES = Axes("seconds of training", "Hit@10 (full)", whole=False, zero=False)


def texts(svg: str | None) -> list[str]:
    assert svg is not None
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg)


def test_rows_and_axes_are_named() -> None:
    drawn = draw_series({"MCF": POINTS, "DT-MCF": LOWER}, AXES, "What it shows.")
    assert {"seconds of training", "Hit@10 (full)", "MCF", "DT-MCF"} <= set(texts(drawn.svg))
    assert drawn.caption == "What it shows."


def test_values_that_are_not_in_proportion_stand_under_their_own_names() -> None:
    style = SeriesStyle(labels=("0", "0.005", "3"), levels={"plain": 7.5})
    found = texts(draw_series({"": POINTS}, AXES, "c", style).svg)
    assert {"0", "0.005", "3", "plain"} <= set(found)
    assert "1" not in found
