import re
import xml.etree.ElementTree as ElementTree

import pytest

from towpath.reports import figures
from towpath.reports.figures import draw_dots
from towpath.stats.estimate import Estimate

DOTS = {
    "popularity": Estimate(2.0, 1.9, 2.1, 9, "by hand"),
    "mf": Estimate(4.0, 3.8, 4.2, 9, "by hand"),
}

needs_charts = pytest.mark.skipif(not figures.charts_available(), reason="needs the extra `report`")


@needs_charts
def test_dots_are_drawn_best_first_with_axis_and_marks():
    svg = draw_dots(DOTS, axis="expected clicks", caption="c", marks={"best possible": 6.5}).svg
    root = ElementTree.fromstring(svg)
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"popularity", "mf", "expected clicks", "best possible"} <= set(texts)
    height = {
        node.text: float(re.search(r",([\d.]+)\)", node.get("transform"))[1])
        for node in root.iter("{http://www.w3.org/2000/svg}text")
        if node.text in {"mf", "popularity"}
    }
    assert height["mf"] < height["popularity"]


@needs_charts
def test_charts_follow_the_colours_of_the_page_and_ask_for_nothing_from_the_net():
    svg = draw_dots(DOTS, axis="x", caption="c").svg
    assert "currentColor" in svg
    assert not re.search(r'(href|src)="http', svg)


@needs_charts
def test_one_dot_without_width_can_be_drawn():
    assert draw_dots({"only": Estimate(1.0, 1.0, 1.0, 1, "")}, axis="x", caption="c").svg.startswith("<svg")


def test_without_the_extra_there_is_a_caption_but_no_chart(monkeypatch):
    monkeypatch.setattr(figures, "charts_available", lambda: False)
    assert draw_dots(DOTS, axis="x", caption="what it would show") == figures.Figure(
        None, "what it would show"
    )
