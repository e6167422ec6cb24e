from dataclasses import replace

import pytest

from towpath.experiments.demo import demonstrate
from towpath.methods.recipe import Recipe
from towpath.reports.demo_page import demo_page, difference_table, example_table, loop_table, summary_table
from towpath.reports.page import to_html
from towpath.reports.tables import show
from towpath.worlds.latent import LatentWorld


@pytest.fixture(scope="module")
def demo():
    compared = {
        "popularity": Recipe("popularity"),
        "ease": Recipe("ease"),
        "plain": Recipe("mf", settings={"epochs": 1}),
    }
    return demonstrate(LatentWorld(users=150, items=120, shown_per_user=30), 0, compared=compared)


def test_summary_is_ordered_by_the_truth(demo):
    true = [row[-1].mean for row in summary_table(demo).rows]
    assert true == sorted(true, reverse=True)
    assert {row[0] for row in summary_table(demo).rows} == {"popularity", "ease", "plain"}


def test_differences_leave_out_the_baseline(demo):
    assert {row[0] for row in difference_table(demo).rows} == {"popularity − plain", "ease − plain"}


def test_page_tells_the_numbers_that_came_out(demo):
    html = to_html(demo_page(demo)).replace("\xa0", " ")  # an interval is not broken over two lines
    assert "150 users and 120 items" in html
    assert "25.0% of all pairs" in html
    assert f"{len(demo.world.log):,} clicks" in html
    for row in summary_table(demo).rows:
        assert show(row[-1], 3) in html
    assert f"{demo.oracle()['best possible']:.2f}" in html


def test_what_each_learns_from_is_told_and_what_becomes_of_it_if_it_is_there(demo):
    html = to_html(demo_page(demo))
    assert "clicks, with items that were not clicked as negatives" in html
    assert "Imitation stays near the log" not in html
    one = replace(demo.results[1], name="imitation")  # for the second, which is told of as if it imitated
    differences = tuple(
        replace(gap, a="imitation" if gap.a == demo.results[1].name else gap.a)
        for gap in demo.comparison.differences
    )
    imitating = replace(
        demo,
        results=(demo.results[0], one, *demo.results[2:]),
        comparison=replace(demo.comparison, differences=differences),
    )
    told = to_html(demo_page(imitating))
    assert f"Imitation stays near the log ({1 - one.tried_share:.0%} never tried)" in told
    assert f"earns {one.mean('rel'):.2f}: it is about" in told


def test_rounds_are_told(demo):
    html = to_html(demo_page(demo))
    (row,) = loop_table(demo).rows
    assert row[0] == "plain"
    assert row[1] == pytest.approx(sum(one.relevance for one in demo.rounds))
    assert f"was promised a hit for {demo.rounds[0].promised_hit:.0%} of the users" in html


def test_a_star_marks_what_the_log_does_not_know(demo):
    user = int(demo.results[0].full[0].users[0])
    shown = set(demo.world.exposures.items[demo.world.exposures.users == user].tolist())
    plain = next(trial for trial in demo.results if trial.name == "plain")
    for row, item in zip(example_table(demo).rows, plain.example, strict=False):
        assert row[1].endswith("*") == (int(item) not in shown)
