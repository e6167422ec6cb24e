import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixed_scorers import events, split_of
from small import small_interactions
from towpath.data.joining import join
from towpath.errors import DataError
from towpath.evaluation.task import task_of


def test_users_without_training_events_are_left_out_and_counted() -> None:
    task = task_of(split_of([(0, 0), (2, 1)], [], [(0, 2), (0, 1), (1, 0), (2, 2)], users=3, items=3), "test")
    assert task.users.tolist() == [0, 2]
    assert task.users_left_out == 1
    assert task.rows.tolist() == [0, 0, 1]
    assert task.targets.tolist() == [1, 2, 2]
    assert task.starts.tolist() == [0, 2, 3]


def test_a_target_counts_once_and_not_if_it_was_seen_before() -> None:
    split = split_of([(0, 0), (1, 1)], [(0, 1)], [(0, 0), (0, 1), (0, 2), (0, 2), (1, 1)], users=2, items=3)
    task = task_of(split, "test")
    assert (task.users.tolist(), task.targets.tolist()) == ([0], [2])
    assert task.users_left_out == 1  # user 1 has only a seen item


def test_validation_is_history_for_test_and_not_for_validation() -> None:
    split = split_of([(0, 0)], [(0, 1)], [(0, 2)], users=1, items=3)
    assert task_of(split, "validation").seen.items.tolist() == [0]
    assert task_of(split, "test").seen.items.tolist() == [0, 1]


def test_an_empty_part_and_one_without_evaluated_users_are_refused() -> None:
    with pytest.raises(DataError, match="validation part of the split has no events"):
        task_of(split_of([(0, 0)], [], [(0, 1)], users=1, items=2), "validation")
    with pytest.raises(DataError, match="None of the 1 users of the test part"):
        task_of(split_of([(0, 0)], [], [(1, 1)], users=2, items=2), "test")


@given(st.integers(0, 2**32))
def test_joining_the_parts_of_a_table_gives_the_table(seed: int) -> None:
    whole = small_interactions(users=7, items=20, per_user=5)
    first = np.random.default_rng(seed).random(len(whole)) < 0.5
    joined = join(whole.where(first), whole.where(~first))
    for column in ("users", "items", "times"):
        assert np.array_equal(getattr(joined, column), getattr(whole, column))


def test_without_times_the_second_comes_after_the_first() -> None:
    joined = join(events([(0, 3), (1, 1)], 2, 4), events([(0, 0), (1, 0)], 2, 4))
    assert joined.users.tolist() == [0, 0, 1, 1]
    assert joined.items.tolist() == [3, 0, 1, 0]
    assert joined.times is None
