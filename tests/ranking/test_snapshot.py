"""Snapshots of rankings by hand: heads, counts, thresholds, draws."""

import numpy as np
import torch

from fixed_scorers import Fixed, events
from towpath.ranking.snapshot import LiveRanking, choose_by_hash, take_snapshot
from towpath.rng import Rng

TABLE = torch.tensor([[5.0, 4.0, 3.0, 2.0], [1.0, 1.0, 2.0, 1.0], [0.0, 1.0, 2.0, 3.0]])
TRAIN = events([(0, 0), (2, 0), (2, 1), (2, 2)], users=3, items=4)


def test_a_snapshot_by_hand() -> None:
    found = take_snapshot(Fixed(TABLE), TRAIN, shown=2, depth=3)
    assert found.head[0].tolist() == [1, 2, 3]
    assert found.head[1].tolist() == [2, 0, 1]
    assert found.head[2, 0] == 3
    assert found.counts.tolist() == [3, 3, 1]
    assert found.thresholds.tolist() == [3, 1, 3]  # user 2 is shown the only item there is


def test_what_is_hidden_is_the_callers_choice() -> None:
    shown = events([(0, 1), (1, 2)], users=3, items=4)
    found = LiveRanking(Fixed(TABLE), TRAIN, shown=1, depth=2, hide=shown.histories).current()
    assert found.head.tolist() == [[0, 2], [0, 1], [3, 2]]
    assert found.thresholds.tolist() == [5, 1, 3]


def test_draws_come_from_the_real_part_of_the_head() -> None:
    found = take_snapshot(Fixed(TABLE), TRAIN, shown=1, depth=4)
    drawn = found.draw(torch.tensor([0, 1, 2]), 200, 2, Rng(0).torch("draws")).numpy()
    assert [set(np.unique(row).tolist()) for row in drawn] == [{1, 2}, {2, 0}, {3}]


def test_a_ranking_stays_until_it_is_refreshed() -> None:
    scorer = Fixed(TABLE.clone())
    ranking = LiveRanking(scorer, TRAIN, shown=1, depth=1)
    assert ranking.current().head.tolist() == [[1], [2], [3]]
    scorer.table.neg_()
    assert ranking.current().head.tolist() == [[1], [2], [3]]
    ranking.refresh()
    assert ranking.current().head.tolist() == [[3], [0], [3]]


def keys(count: int) -> np.ndarray:
    return Rng(1).numpy("keys").integers(2**32, size=count, dtype=np.uint32)


def test_a_choice_by_hash_is_uniform_over_the_real_items() -> None:
    top = np.tile(np.array([7, 3, 11, 5, 0], dtype=np.int32), (40_000, 1))
    chosen = choose_by_hash(top, np.full((len(top), 1), 4), keys(len(top)))
    found = np.bincount(chosen, minlength=12)[[7, 3, 11, 5]]
    assert found.sum() == len(top)
    assert np.abs(found / len(top) - 0.25).max() < 0.01  # more than four standard errors


def test_a_choice_by_hash_knows_no_order_and_hardly_feels_an_exchange() -> None:
    draw = Rng(2).numpy("items")
    top = np.stack([draw.permutation(1000)[:50] for _ in range(2_000)]).astype(np.int32)
    counts = np.full((len(top), 1), 50)
    before = choose_by_hash(top, counts, keys(len(top)))
    assert np.array_equal(choose_by_hash(top[:, ::-1].copy(), counts, keys(len(top))), before)
    exchanged = top.copy()
    exchanged[:, -1] = 2_000
    after = choose_by_hash(exchanged, counts, keys(len(top)))
    moved = after != before
    assert ((after == 2_000) | (before == top[:, -1]))[moved].all()
    assert 0 < moved.mean() < 0.08  # two in fifty, and chance


def test_models_of_sequences_are_drawn_for_by_item() -> None:
    class Sequences(Fixed):
        trains_on_sequences = True

    found = take_snapshot(Sequences(TABLE), TRAIN, shown=1, depth=4)
    assert found.by_item
    assert not take_snapshot(Fixed(TABLE), TRAIN, shown=1, depth=4).by_item
    drawn = found.draw(torch.tensor([0, 1, 2]), 200, 2, Rng(0).torch("draws")).numpy()
    assert drawn.shape == (3, 200)
    assert [set(np.unique(row).tolist()) for row in drawn] == [{1, 2}, {2, 0}, {3}]
