"""The evidence ladder: levels by hand, bounds in worlds whose truth is known."""

import numpy as np
import pytest

from towpath.diagnostics.evidence import Evidence, Shown, find_evidence
from towpath.rng import Rng


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
    low, high = found.expected_clicks()
    assert low.mean == pytest.approx(0.75 / 5)
    assert high.mean == pytest.approx(3.75 / 5)
    # Two impressions of weight 1/10 (one clicked) and twenty of weight 1/100 (five clicked); errors add up.
    error = np.sqrt(0.01 * 2 * 0.5**2) + np.sqrt(0.0001 * (5 * 0.75**2 + 15 * 0.25**2))
    assert low.high - low.mean == pytest.approx(1.959964 * error, rel=1e-6)


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
    low, high = found.expected_clicks()
    assert (low.mean, high.mean) == pytest.approx((1 / 3, 1))


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
    assert [estimate.mean for estimate in found.expected_clicks()] == [0, 1]


def _world(seed: int) -> tuple[Shown, np.ndarray, np.ndarray, np.ndarray]:
    """Two kinds of users with click chances by kind and item; a skewed, deterministic-looking log."""
    rng = Rng(seed).numpy("world")
    users, items, per_user = 120, 30, 12
    kind = np.arange(users) % 2
    chance = rng.uniform(0.02, 0.6, size=(2, items))
    liked = chance[kind] + rng.normal(0, 0.15, size=(users, items))
    shown = np.argsort(-liked + np.linspace(0, 0.6, items), axis=1)[:, :per_user]
    who = np.repeat(np.arange(users), per_user)
    what = shown.ravel()
    clicked = rng.random(len(who)) < chance[kind[who], what]
    return Shown(who, what, clicked, items), kind, chance[kind], rng.random((users, items))


def _recommenders(truth: np.ndarray, noise: np.ndarray, shown: Shown) -> dict[str, np.ndarray]:
    popular = np.tile(np.bincount(shown.items, minlength=30), (len(truth), 1))
    return {
        "best": np.argsort(-truth, axis=1)[:, :5],
        "worst": np.argsort(truth, axis=1)[:, :5],
        "random": np.argsort(noise, axis=1)[:, :5],
        "popular": np.argsort(-popular, axis=1, kind="stable")[:, :5],
        "rare": np.argsort(popular, axis=1, kind="stable")[:, :5],
        "noisy": np.argsort(-truth - 0.3 * noise, axis=1)[:, :5],
    }


def test_bounds_hold_for_six_recommenders_in_at_least_95_of_100_worlds() -> None:
    held: dict[str, int] = {}
    widths = []
    for seed in range(100):
        shown, kind, truth, noise = _world(seed)
        everyone = np.arange(len(truth))
        for name, lists in _recommenders(truth, noise, shown).items():
            found: Evidence = find_evidence(lists, everyone, shown, kind)
            low, high = found.expected_clicks()
            clicks = float(np.take_along_axis(truth, lists, axis=1).mean())
            held[name] = held.get(name, 0) + (low.low <= clicks <= high.high)
            widths.append(high.high - low.low)
    assert min(held.values()) >= 95, held
    assert np.mean(widths) < 0.75  # they say something
