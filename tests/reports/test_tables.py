import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.reports.tables import Table, to_csv, to_markdown
from towpath.stats.estimate import Estimate
from towpath.stats.spread import mean_and_deviation

TWO_MODELS = Table(
    ("model", "hit", "users"),
    (("mf", Estimate(0.25, 0.2, 0.3, 9, "by hand"), 1204), ("a|b", 0.5, 7)),
    decimals=2,
)


def test_markdown_by_hand():
    assert to_markdown(TWO_MODELS).splitlines() == [
        "| model |                 hit | users |",
        "|:------|--------------------:|------:|",
        "| mf    | 0.25 (0.20 to 0.30) | 1,204 |",
        "| a\\|b  |                0.50 |     7 |",
    ]


def test_csv_keeps_full_precision_and_spreads_intervals():
    third = Table(("model", "hit"), (("mf", Estimate(1 / 3, 0.1, 0.9, 9, "by hand")), ("ease", 0.5)))
    rows = list(csv.reader(to_csv(third).splitlines()))
    assert rows[0] == ["model", "hit", "hit low", "hit high"]
    assert float(rows[1][1]) == 1 / 3
    assert rows[2] == ["ease", "0.5", "", ""]


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False), st.integers()), min_size=1))
def test_csv_gives_every_cell_back(rows):
    table = Table(("name", "value", "count"), tuple(rows))
    # Plain newlines in, so that line ends inside quoted names survive.
    back = list(csv.reader(to_csv(table).splitlines(keepends=True), strict=True))
    assert len(to_markdown(table)) > 0
    if not any(set(name) & set("\r\n\0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029") for name, _, _ in rows):
        assert [(name, float(value), int(count)) for name, value, count in back[1:]] == rows


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="2 columns got a row of 1"):
        Table(("a", "b"), (("only",),))


def test_the_caption_says_how_every_interval_was_made():
    gap, mean = Estimate(0.2, 0.1, 0.3, 9, "95 % bootstrap"), mean_and_deviation(0.5, 0.1, n=3)
    table = Table(("a", "b"), ((gap, mean), (gap, 0.5)), "Differences.")
    assert table.full_caption == ("Differences. 95 % bootstrap. Mean ± one standard deviation between seeds.")
    assert Table(("a",), ((gap,),), "With 95 % bootstrap intervals.").full_caption == (
        "With 95 % bootstrap intervals."
    )
    assert Table(("a",), ((0.5,),)).full_caption == ""
