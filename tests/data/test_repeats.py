from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from towpath.data.interactions import Interactions
from towpath.data.repeats import (
    DAY,
    FIRST,
    HOUR,
    WEEK,
    RestCurve,
    estimate_rest,
    showings_of,
    time_since_shown,
)
from towpath.data.vocabulary import Vocabulary
from towpath.errors import DataError
from towpath.ranking.resting import Rest, Resting
from towpath.ranking.top_k import HIDDEN


def log(rows: list[tuple[int, int, int, int]], users: int = 2, items: int = 3) -> Interactions:
    user, item, time, click = np.array(rows).T
    return Interactions(
        users=user.astype(np.int32),
        items=item.astype(np.int32),
        user_ids=Vocabulary(pa.array(range(users))),
        item_ids=Vocabulary(pa.array(range(items))),
        times=time.astype(np.int64),
        labels=click.astype(np.bool_),
    )


LOG = log([(0, 0, 10, 0), (0, 1, 20, 0), (0, 0, 25, 1), (1, 0, 5, 0), (1, 2, 6, 0), (1, 2, 6 + HOUR, 0)])


def test_times_since_the_last_showing_by_hand() -> None:
    assert time_since_shown(LOG).tolist() == [FIRST, FIRST, 15, FIRST, FIRST, HOUR]


def test_showings_by_hand() -> None:
    counts, last = showings_of(LOG).of(np.array([1, 0]))
    assert counts.tolist() == [[1, 0, 2], [2, 1, 0]]
    assert last[0, 2] == 6 + HOUR
    assert last[1, 0] == 25


def test_a_curve_gives_the_factor_of_its_span() -> None:
    curve = RestCurve(np.array([HOUR, DAY]), np.array([0.1, 0.5, 1.2]), np.zeros(3, dtype=np.int64))
    assert curve.at(np.array([FIRST, 0, HOUR, DAY - 1, DAY])).tolist() == [1.0, 0.1, 0.5, 0.5, 1.2]


def test_the_discount_of_the_world_is_found() -> None:
    rng = np.random.default_rng(0)
    users, gaps = 3_000, [HOUR // 2, 2 * HOUR, 2 * DAY, 2 * WEEK]
    true = [0.1, 0.5, 1.0, 1.0]
    rows = []
    for user in range(users):
        for item, (gap, factor) in enumerate(zip(gaps, true, strict=True)):
            clicked = rng.random() < 0.3
            rows.append((user, item, 0, clicked))
            if not clicked:
                rows.append((user, item, gap, rng.random() < 0.3 * factor))
    curve = estimate_rest(log(rows, users, 4))
    assert curve.factors == pytest.approx(true, abs=0.12)
    assert curve.repeats.sum() == len(rows) - 4 * users


def test_without_repeats_nothing_is_discounted_and_without_times_nothing_is_known() -> None:
    once = log([(0, 0, 1, 1), (0, 1, 2, 0), (1, 0, 3, 0)])
    assert estimate_rest(once).factors.tolist() == [1.0] * 4
    twice = log([(user, item, 5, 0) for user in range(2) for item in range(3) for _ in range(9)])
    assert estimate_rest(twice).repeats.tolist() == [0] * 4
    with pytest.raises(DataError, match="have no time column"):
        time_since_shown(replace(once, times=None))


def test_a_recommender_lets_items_rest() -> None:
    scores, users = torch.zeros(2, 3), np.array([0, 1])
    curve = RestCurve(np.array([HOUR]), np.array([0.5, 1.0]), np.zeros(2, dtype=np.int64))
    showings, now = showings_of(LOG), 30 + HOUR

    def rest(resting: Resting) -> list[list[float]]:
        return Rest(resting, showings, now)(scores, users).tolist()

    assert rest(Resting()) == scores.tolist()
    assert rest(Resting(hide_shown=True)) == [[HIDDEN, HIDDEN, 0.0], [HIDDEN, 0.0, HIDDEN]]
    assert rest(Resting(most_showings=2)) == [[HIDDEN, 0.0, 0.0], [0.0, 0.0, HIDDEN]]
    assert rest(Resting(curve=curve))[1] == pytest.approx([0.0, 0.0, np.log(0.5)])
    assert rest(Resting(curve=curve))[0] == pytest.approx([0.0, 0.0, 0.0])
    some = Rest(Resting(most_showings=2), showings, now)(scores[:, :2], users, np.array([[2, 0]]))
    assert some.tolist() == [[0.0, HIDDEN], [HIDDEN, 0.0]]
    later = Rest(Resting(curve=curve), showings, np.array([now, now + HOUR]))(scores, users)
    assert later.tolist() == [[0.0] * 3] * 2  # an hour more for the second user
