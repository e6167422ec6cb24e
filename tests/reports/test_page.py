import os
import re
from html.parser import HTMLParser

import pytest

from towpath.errors import ArtifactError
from towpath.reports.figures import Figure, draw_dots
from towpath.reports.page import Page, Section, to_html, write_page
from towpath.reports.tables import Table
from towpath.stats.estimate import Estimate

PAGE = Page(
    "Two <models>",
    "mf & ease",
    (
        Section(
            "What came out",
            ("First.", "Second."),
            (Table(("model", "hit"), (("<script>", 0.5),), caption="Hit@10"),),
            (draw_dots({"mf": Estimate(1, 0.5, 1.5, 9, "by hand")}, axis="hit", caption="a chart"),),
        ),
    ),
    footer="made by towpath",
)


class Balance(HTMLParser):
    """Counts the tags that are open at the end."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_backticks_are_code_and_still_escaped():
    html = to_html(Page("A page", "The setting `floor` of `<b>`; a ` alone stays.", ()))
    assert "The setting <code>floor</code> of <code>&lt;b&gt;</code>; a ` alone stays." in html


def test_page_is_well_formed_and_escapes_text():
    html = to_html(PAGE)
    parser = Balance()
    parser.feed(html)
    assert parser.open == []
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "Two &lt;models&gt;" in html
    assert "0.500" in html


def test_page_asks_for_nothing_from_the_net():
    assert not re.search(r'(href|src)="|url\(|@import', to_html(PAGE).replace('xlink:href="#', ""))


def test_missing_charts_say_how_to_get_them():
    html = to_html(Page("t", "l", (Section("s", figures=(Figure(None, "bars are intervals"),)),)))
    assert "pip install altair vl-convert-python" in html
    assert "bars" not in html  # there are none


def test_commands_stand_on_lines_of_their_own():
    html = to_html(Page("t", "l", (Section("s", commands=("towpath fit a.csv", "towpath <x>")),)))
    assert "<pre>towpath fit a.csv\ntowpath &lt;x&gt;</pre>" in html


def test_points_contents_and_small_figures():
    section = Section("Careful", points=("Mind <this>.",), figures=(Figure("<svg></svg>", "c", small=True),))
    html = to_html(Page("t", "l", (section,), contents=True))
    assert "<li>Mind &lt;this&gt;.</li>" in html
    assert '<figure class="small">' in html
    assert '<a href="#part-1">Careful</a>' in html
    assert '<section id="part-1">' in html
    assert "<nav" not in to_html(Page("t", "l", (section,)))


def test_page_is_written_whole_and_nothing_else_is_left(tmp_path):
    path = write_page(PAGE, tmp_path / "deep" / "index.html")
    assert path.read_text(encoding="utf-8") == to_html(PAGE)
    assert os.listdir(path.parent) == ["index.html"]


def test_a_place_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArtifactError, match=r"index\.html cannot be written: .* choose another place"):
        write_page(PAGE, tmp_path / "file" / "index.html")
    assert os.listdir(tmp_path) == ["file"]
