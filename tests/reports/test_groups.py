import re

import pytest

from towpath.reports.figures import charts_available
from towpath.reports.groups import draw_groups

ROWS = {"top 1 %": {"the log": 0.5, "this run": 0.25}, "the rest": {"the log": 0.5, "this run": 0.75}}


@pytest.mark.skipif(not charts_available(), reason="the extra `report` is not installed")
def test_every_row_and_thing_is_named_in_order():
    svg = draw_groups(ROWS, "share of places", "Where places go.").svg
    texts = re.findall(r">([^<>]+)</text>", svg)
    assert "share of places" in texts
    assert texts.index("the log") < texts.index("this run")
    heights = {name: svg.index(f">{name}<") for name in ROWS}
    assert heights["top 1 %"] < heights["the rest"]


@pytest.mark.skipif(not charts_available(), reason="the extra `report` is not installed")
def test_things_differ_in_shape_not_in_colour_alone():
    svg = draw_groups(ROWS, "share", "").svg
    marks = re.findall(r'<path aria-label="[^"]*(the log|this run)[^"]*"[^>]* d="([^"]+)"', svg)
    shapes = {thing: {path for name, path in marks if name == thing} for thing in ("the log", "this run")}
    assert shapes["the log"]
    assert shapes["the log"].isdisjoint(shapes["this run"])


def test_without_charts_the_caption_is_left(monkeypatch):
    monkeypatch.setattr("towpath.reports.groups.charts_available", lambda: False)
    assert draw_groups(ROWS, "share", "Where places go.").svg is None
