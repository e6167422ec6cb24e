import pytest

from towpath.experiments.demo import demonstrate
from towpath.methods.recipe import Recipe
from towpath.reports.demo_page import demo_page, difference_table, summary_table
from towpath.reports.page import to_html
from towpath.reports.tables import show
from towpath.worlds.latent import LatentWorld


@pytest.fixture(scope="module")
def demo():
    compared = {
        "popularity": Recipe("popularity"),
        "ease": Recipe("ease"),
        "mf": Recipe("mf", settings={"epochs": 1}),
    }
    return demonstrate(LatentWorld(users=150, items=120, shown_per_user=30), 0, compared=compared)


def test_summary_is_ordered_by_the_truth(demo):
    true = [row[-1].value for row in summary_table(demo).rows]
    assert true == sorted(true, reverse=True)
    assert {row[0] for row in summary_table(demo).rows} == {"popularity", "ease", "mf"}


def test_differences_leave_out_the_baseline(demo):
    assert {row[0] for row in difference_table(demo).rows} == {"popularity − mf", "ease − mf"}


def test_page_tells_the_numbers_that_came_out(demo):
    html = to_html(demo_page(demo))
    assert "150 users and 120 items" in html
    assert "25.0% of all pairs" in html
    assert f"{len(demo.world.log):,} clicks" in html
    for row in summary_table(demo).rows:
        assert show(row[-1], 3) in html
    assert f"{demo.oracle()['best possible']:.2f}" in html
