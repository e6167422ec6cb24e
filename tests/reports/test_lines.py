from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.reports.lines import Axes, draw_lines, spread


@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.floats(0.1, 1))
def test_names_are_moved_apart_and_keep_their_order(heights, gap):
    moved = spread(heights, gap)
    assert all(b - a > gap * 0.9 for a, b in pairwise(sorted(moved)))
    by_height = sorted(range(len(heights)), key=lambda place: heights[place])
    assert [moved[place] for place in by_height] == sorted(moved)
    assert sum(moved) == pytest.approx(sum(heights), abs=1e-6)


def test_every_line_is_named():
    figure = draw_lines(
        {"plain": [(1, 2.0), (2, 1.0)], "ipw": [(1, 1.5), (2, 1.4)]},
        Axes("round", "clicks"),
        "What it shows.",
    )
    assert figure.caption == "What it shows."
    assert figure.svg is None or all(word in figure.svg for word in ("plain", "ipw", "round", "clicks"))
