"""Snapshots of rankings by hand: heads, counts, thresholds, draws."""

import numpy as np
import torch

from fixed_scorers import Fixed, events
from towpath.ranking.snapshot import LiveRanking, take_snapshot
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
