from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.reports.figures import charts_available
from towpath.reports.lines import Axes, above, draw_lines, ends_of, spread, whole_marks


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


@pytest.mark.skipif(not charts_available(), reason="the extra `report` is not installed")
def test_a_place_can_be_marked_and_many_epochs_do_not_crowd_the_axis():
    points = [(n, 1 / n) for n in range(1, 61)]
    svg = draw_lines({"loss": points}, Axes("epoch", "loss", mark=("kept", 50), small=True), "").svg
    assert ">kept<" in svg
    assert ">60<" in svg
    assert ">59<" not in svg


def test_one_epoch_is_enough():
    assert draw_lines({"loss": [(1, 0.5)]}, Axes("epoch", "loss", small=True), "One.").caption == "One."


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.booleans())
def test_an_axis_holds_all_its_values(values, zero):
    low, high = ends_of(values, zero=zero)
    assert low < high
    assert low <= min(values)
    assert high >= max(values)
    assert not zero or low <= 0 <= high


@given(st.integers(1, 5), st.integers(1, 5000))
def test_marks_are_whole_few_and_within(first, count):
    marks = whole_marks(range(first, first + count))
    assert 1 <= len(marks) <= 8
    assert all(first <= mark < first + count for mark in marks)


def test_names_stay_above_the_axis():
    assert above([-1.0, 2.0], 0.5) == [0.5, 3.5]
    assert above([1.0, 2.0], 0.5) == [1.0, 2.0]
