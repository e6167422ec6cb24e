"""The evidence ladder: levels by hand, bounds in worlds whose truth is known."""

import numpy as np
import pytest
from benchmarks.evidence import held_in_latent_world, held_in_world_of_kinds

from towpath.diagnostics.evidence import Shown, find_evidence
from towpath.stats.intervals import gamma_interval


def repeated(*rows: tuple[int, int, int, int]) -> Shown:
    """Rows (user, item, clicks, shown in all)."""
    users = np.repeat([u for u, *_ in rows], [n for *_, n in rows])
    items = np.repeat([i for _, i, *_ in rows], [n for *_, n in rows])
    clicked = np.concatenate([np.arange(n) < c for *_, c, n in rows])
    return Shown(users, items, clicked, n_items=6)


# Users 0 and 1 are alike, user 2 is another kind.
CELLS = np.array([0, 0, 1])
SHOWN = repeated((0, 0, 1, 2), (1, 1, 5, 20), (2, 2, 3, 30), (2, 3, 1, 19))


def test_levels_and_rates_by_hand() -> None:
    lists = np.array([[0, 1, 2], [3, 4, -1]])
    found = find_evidence(lists, np.array([0, 1]), SHOWN, CELLS)
    assert found.levels.tolist() == [[1, 2, 3], [4, 4, 0]]  # 19 times is not enough
    assert found.rates[0, :2].tolist() == [0.5, 0.25]
    assert np.isnan(found.rates[0, 2])
    assert found.slots == 5
    assert found.shares() == pytest.approx(
        {"shown_to_user": 0.2, "similar_users": 0.2, "item_known": 0.2, "never_shown": 0.4}
    )
    clicks = found.expected_clicks()
    assert (clicks.low, clicks.high) == pytest.approx((0.75 / 5, 3.75 / 5))
    # Two impressions of weight 1/10 (one clicked) and twenty of weight 1/100 (five clicked).
    both = gamma_interval(22 * np.r_[0.1, 0.1, np.full(20, 0.01)], np.r_[1.0, 0.0, np.ones(5), np.zeros(15)])
    assert clicks.alike == pytest.approx((both.low, min(both.high, 0.4) + 0.6))
    own = gamma_interval(np.array([0.2, 0.2]), np.array([1.0, 0.0]))
    assert clicks.sure == pytest.approx((own.low, min(own.high, 0.2) + 0.8))


def test_counts_by_item_and_segment() -> None:
    found = find_evidence(np.array([[0, 1], [1, 5]]), np.array([0, 1]), SHOWN, CELLS)
    by_item = found.by_item(6)
    assert by_item[1].tolist() == [1, 1, 0, 0]
    assert by_item[5].tolist() == [0, 0, 0, 1]
    assert found.by_segment(np.array([1, 0])).tolist() == [[1, 0, 0, 1], [1, 1, 0, 0]]


def test_clicks_alone_vouch_for_clicked_pairs_only() -> None:
    clicks = Shown(SHOWN.users, SHOWN.items, np.ones(len(SHOWN), dtype=np.bool_), 6, complete=False)
    found = find_evidence(np.array([[0, 1, 2]]), np.array([0]), clicks, CELLS)
    assert found.levels.tolist() == [[1, 2, 3]]
    assert np.isnan(found.rates).tolist() == [[False, True, True]]
    clicks = found.expected_clicks()
    assert (clicks.low, clicks.high) == pytest.approx((1 / 3, 1))
    assert clicks.sure == (0, 1)  # clicked pairs were picked by their clicks


def test_what_was_shown_before_the_period_makes_an_item_known() -> None:
    earlier = np.array([0, 0, 0, 1, 30, 0])
    shown = Shown(SHOWN.users, SHOWN.items, SHOWN.clicked, 6, earlier=earlier)
    found = find_evidence(np.array([[3, 4, 5]]), np.array([0]), shown, CELLS)
    assert found.levels.tolist() == [[3, 3, 4]]
    assert np.isnan(found.rates).all()


def test_nothing_shown_means_no_evidence() -> None:
    none = Shown(*(np.zeros(0, dtype=np.int64),) * 2, np.zeros(0, dtype=np.bool_), 6)
    found = find_evidence(np.array([[0, 1]]), np.array([0]), none, CELLS)
    assert found.shares()["never_shown"] == 1
    clicks = found.expected_clicks()
    assert (clicks.low, clicks.high) == clicks.sure == clicks.alike == (0, 1)


def test_an_impression_that_vouches_twice_counts_for_both() -> None:
    """User 0 was shown item 1 twenty times: it is their own answer, and the cell's for user 1."""
    shown = repeated((0, 1, 5, 20))
    found = find_evidence(np.array([[1], [1]]), np.array([0, 1]), shown, CELLS)
    assert found.levels.tolist() == [[1], [2]]
    one = gamma_interval(np.full(20, 1.0), np.r_[np.ones(5), np.zeros(15)])
    assert found.expected_clicks().alike == pytest.approx((one.low, one.high))


def test_frequent_clicks_are_counted_by_what_was_not_clicked() -> None:
    shown = repeated((0, 1, 18, 20))
    clicks = find_evidence(np.array([[1]]), np.array([0]), shown, CELLS).expected_clicks()
    missed = gamma_interval(np.full(20, 1.0), np.r_[np.ones(2), np.zeros(18)])
    assert clicks.sure == pytest.approx((1 - missed.high, 1 - missed.low))


def _counts(found: list[dict[str, dict[str, bool]]], which: str) -> dict[str, int]:
    """In how many worlds this interval held, by recommender."""
    return {name: sum(world[name][which] for world in found) for name in found[0]}


def test_intervals_hold_where_similar_users_click_alike() -> None:
    found = [held_in_world_of_kinds("kinds, rare clicks", seed) for seed in range(100)]
    for which in ("sure", "alike", "own answers"):
        assert min(_counts(found, which).values()) >= 95, (which, _counts(found, which))


def test_the_sure_interval_holds_where_similar_users_do_not_click_alike() -> None:
    """A quick version of benchmarks/evidence.py, whose counts are in docs/results."""
    found = [held_in_latent_world("much evidence, strong tastes", seed) for seed in range(10)]
    for which in ("sure", "own answers"):
        assert min(_counts(found, which).values()) == 10, (which, _counts(found, which))
    assert _counts(found, "alike")["worst"] < 5  # so that the difference between the two is real
