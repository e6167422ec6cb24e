import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR, R, Success, nDCG
from numpy.testing import assert_allclose

from towpath.evaluation.metrics import (
    Ranks,
    hit_at_k,
    mrr_at_k,
    ndcg_at_k,
    recall_at_k,
    rel_at_k,
    relevance_of_lists,
)

SHARES = [hit_at_k, ndcg_at_k, recall_at_k, mrr_at_k]


def ranks_of(*users: list[float]) -> Ranks:
    """One list of ranks for each user."""
    return Ranks(
        np.array([rank for user in users for rank in user], dtype=np.float64),
        np.repeat(np.arange(len(users)), [len(user) for user in users]),
        np.array([len(user) for user in users]),
    )


def test_values_by_hand_with_one_target() -> None:
    ranks = ranks_of([0], [1], [9], [10])
    assert hit_at_k(ranks, 10).tolist() == [1, 1, 1, 0]
    assert_allclose(ndcg_at_k(ranks, 10), [1, 1 / math.log2(3), 1 / math.log2(11), 0])
    assert_allclose(mrr_at_k(ranks, 10), [1, 1 / 2, 1 / 10, 0])
    assert recall_at_k(ranks, 10).tolist() == rel_at_k(ranks, 10).tolist() == [1, 1, 1, 0]


def test_values_by_hand_with_several_targets() -> None:
    ranks = ranks_of([0, 3, 7], [5, 6])
    assert hit_at_k(ranks, 5).tolist() == [1, 0]
    assert rel_at_k(ranks, 5).tolist() == [2, 0]
    assert_allclose(recall_at_k(ranks, 5), [2 / 3, 0])
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert_allclose(ndcg_at_k(ranks, 5), [(1 + 1 / math.log2(5)) / ideal, 0])
    assert_allclose(ndcg_at_k(ranks_of([0, 1, 2, 3]), 2), [1])  # ideal holds min(k, targets) items


def test_half_ranks_are_used_as_they_are() -> None:
    ranks = ranks_of([0.5], [9.5], [10.0])
    assert_allclose(ndcg_at_k(ranks, 10), [1 / math.log2(2.5), 1 / math.log2(11.5), 0])
    assert_allclose(mrr_at_k(ranks, 10), [1 / 1.5, 1 / 10.5, 0])


def test_a_list_of_one_place_holds_one_of_two_tied_targets() -> None:
    tied = ranks_of([0.5, 0.5])
    assert rel_at_k(tied, 1).tolist() == [1]
    assert_allclose(ndcg_at_k(tied, 1), [1 / math.log2(2.5)])


def test_further_copies_are_further_hits() -> None:
    ranks = Ranks(
        np.array([2.0, 3.0, 9.5, 10.5]),
        np.array([0, 0, 1, 1]),
        np.array([1, 1]),
        np.array([False, True, False, True]),
    )
    assert hit_at_k(ranks, 10).tolist() == [2, 1]
    assert_allclose(ndcg_at_k(ranks, 10), [1 / 2 + 1 / math.log2(5), 1 / math.log2(11.5)])


def test_relevance_is_summed_over_the_places_that_hold_an_item() -> None:
    lists = np.array([[3, 1], [2, -1]])
    assert_allclose(relevance_of_lists(np.array([[0.5, 0.25], [0.75, 9.0]]), lists), [0.75, 0.75])


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=30), min_size=1, max_size=5), st.data())
def test_metrics_lie_between_0_and_1(users: list[list[int]], data: st.DataObject) -> None:
    """Any scores with any ties, any items as targets, any k."""
    k = data.draw(st.integers(1, 12))
    found = []
    for scores in users:
        row = np.array(scores)
        ranks = [(row > s).sum() + ((row == s).sum() - 1) / 2 for s in row]
        found.append(data.draw(st.lists(st.sampled_from(range(len(row))), min_size=1, unique=True)))
        found[-1] = [float(ranks[i]) for i in found[-1]]
    for metric in SHARES:
        values = metric(ranks_of(*found), k)
        assert ((values >= 0) & (values <= 1 + 1e-12)).all(), metric.__name__
    assert (rel_at_k(ranks_of(*found), k) <= k).all()


@given(st.lists(st.floats(0, 50), min_size=2, max_size=10), st.integers(1, 20), st.randoms())
def test_the_order_of_targets_does_not_matter(values: list[float], k: int, random) -> None:
    shuffled = random.sample(values, len(values))
    for metric in [*SHARES, rel_at_k]:
        assert_allclose(metric(ranks_of(values), k), metric(ranks_of(shuffled), k))


@pytest.mark.parametrize("k", [1, 5, 10, 30])
def test_agrees_with_an_independent_library(k: int) -> None:
    """ir-measures (trec_eval) on 200 random rankings of 50 items with 1 to 20 relevant ones."""
    rng = np.random.default_rng(k)
    scores = rng.permuted(np.tile(np.arange(50.0), (200, 1)), axis=1)
    relevant = [rng.choice(50, rng.integers(1, 21), replace=False) for _ in range(200)]
    run = {str(u): {str(i): s for i, s in enumerate(row)} for u, row in enumerate(scores)}
    truth = {str(u): {str(i): 1 for i in items} for u, items in enumerate(relevant)}
    ours = ranks_of(*(list(49 - scores[u, items]) for u, items in enumerate(relevant)))
    pairs = [(nDCG @ k, ndcg_at_k), (R @ k, recall_at_k), (RR @ k, mrr_at_k), (Success @ k, hit_at_k)]
    theirs = {
        (m.measure, int(m.query_id)): m.value
        for m in ir_measures.iter_calc([p[0] for p in pairs], truth, run)
    }
    for measure, metric in pairs:
        assert_allclose(metric(ours, k), [theirs[measure, u] for u in range(200)], atol=1e-6)
