import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small import small_split
from towpath.diagnostics.lists import BANDS, shared, spread_of
from towpath.evaluation.evaluate import evaluate
from towpath.evaluation.task import task_of
from towpath.models.registry import build
from towpath.models.scorer import sizes_of
from towpath.ranking.blocks import NOTHING
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng

SPLIT = small_split()


def popularity():
    scorer = build("popularity", {}, sizes_of(SPLIT.train))
    scorer.initialise(SPLIT.train, Rng(0))
    return scorer


def test_lists_leave_out_what_was_seen_and_are_in_order_of_the_score():
    task = task_of(SPLIT, "test")
    lists = top_k_lists(popularity(), task.users, task.seen, 10).items
    counts = SPLIT.train.item_counts
    for row, user in enumerate(task.users):
        seen = set(task.seen.items[task.seen.starts[user] : task.seen.starts[user + 1]].tolist())
        best = [i for i in np.argsort(-counts, kind="stable").tolist() if i not in seen]
        assert lists[row].tolist() == best[:10]


def test_a_user_who_has_seen_nearly_everything_gets_a_shorter_list():
    few = small_split(items=14)
    scorer = build("popularity", {}, sizes_of(few.train))
    scorer.initialise(few.train, Rng(0))
    lists = top_k_lists(scorer, np.arange(3), task_of(few, "test").seen, 20).items
    assert lists.shape == (3, 20)
    assert (np.count_nonzero(lists != NOTHING, axis=1) == 14 - 11).all()


def test_spread_agrees_with_what_an_evaluation_says_of_the_lists():
    task = task_of(SPLIT, "test")
    spread = spread_of(top_k_lists(popularity(), task.users, task.seen, 10).items, SPLIT.train)
    evaluated = evaluate(popularity(), SPLIT).overall
    assert spread.coverage == pytest.approx(evaluated["coverage"])
    assert spread.popularity == pytest.approx(evaluated["popularity"])
    assert spread.places == 10 * len(task.users)


def test_spread_by_hand():
    counts = SPLIT.train.item_counts
    best = np.argsort(-counts, kind="stable")
    # 40 items: the bands end after 1, 2, 8, 20 and 40 of them.
    places = np.array([[best[0], best[0], best[1], best[7], best[7], best[39], NOTHING]])
    spread = spread_of(places, SPLIT.train)
    assert spread.bands == pytest.approx((2 / 6, 1 / 6, 2 / 6, 0, 1 / 6))
    assert len(spread.bands) == len(BANDS)
    assert spread.half == 2
    assert spread.coverage == pytest.approx(4 / 40)
    assert spread.thin == pytest.approx(np.mean(counts[best[[0, 0, 1, 7, 7, 39]]] < 5))
    assert spread.popularity == pytest.approx(counts[best[[0, 0, 1, 7, 7, 39]]].mean() / 60)


@given(st.permutations(range(8)), st.permutations(range(8)))
def test_shared_counts_what_both_hold_whatever_the_order(one, other):
    a, b = np.array([one[:4]]), np.array([other[:4]])
    assert shared(a, b)[0] == len(set(one[:4]) & set(other[:4])) / 4
    assert shared(a, b)[0] == shared(b, a)[0]
    assert shared(a, a)[0] == 1


def test_empty_places_are_not_shared():
    assert shared(np.array([[3, NOTHING]]), np.array([[5, NOTHING]])).tolist() == [0]
    assert shared(np.array([[3, NOTHING]]), np.array([[3, NOTHING]])).tolist() == [1]
