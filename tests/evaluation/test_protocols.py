import numpy as np
import pyarrow as pa
import pytest

from fixed_scorers import split_of
from small import small_split
from towpath.data.vocabulary import Vocabulary
from towpath.errors import ConfigError
from towpath.evaluation import protocols
from towpath.evaluation.protocols import NEGATIVES, raw_items, sample_negatives
from towpath.evaluation.task import RankingTask, task_of
from towpath.ranking.blocks import NOTHING


def sampled(task: RankingTask, protocol: protocols.EvalProtocol = "sampled", seed: int = 0) -> np.ndarray:
    negatives = sample_negatives(protocol, task, seed)
    assert negatives is not None
    return negatives.items


def test_sampled_negatives_are_distinct_and_never_the_users_own() -> None:
    split = small_split(users=40, items=150, per_user=20)
    task = task_of(split, "validation")
    drawn = sampled(task)
    assert drawn.shape == (40, NEGATIVES)
    assert ((drawn >= 0) & (drawn < 150)).all()
    for user, row in zip(task.users, drawn, strict=True):
        own = {
            i for part in (split.train, split.validation, split.test) for i in part.items[part.users == user]
        }
        assert len(own) == 20
        assert len(set(row)) == NEGATIVES
        assert not own & set(row)


def test_a_user_with_just_enough_unseen_items_gets_all_of_them() -> None:
    split = small_split(users=5, items=NEGATIVES + 7, per_user=7)
    task = task_of(split, "test")
    for user, row in zip(task.users, sampled(task), strict=True):
        own = {
            i for part in (split.train, split.validation, split.test) for i in part.items[part.users == user]
        }
        assert set(row) | own == set(range(NEGATIVES + 7))


def test_a_user_with_too_few_unseen_items_is_named() -> None:
    split = small_split(users=5, items=NEGATIVES + 6, per_user=7)
    with pytest.raises(
        ConfigError, match=r"needs 100 .* 5 of 5 users have fewer \(first: user 'u0' with 99\)"
    ):
        sampled(task_of(split, "test"))


def test_sampled_negatives_are_uniform_over_unseen_items() -> None:
    users, items = 4000, 202
    split = split_of(
        [(u, 0) for u in range(users)], [], [(u, 201) for u in range(users)], users=users, items=items
    )
    counts = np.bincount(sampled(task_of(split, "test")).ravel(), minlength=items)
    assert counts[0] == counts[201] == 0
    expected = users * NEGATIVES / 200
    assert abs(counts[1:201] - expected).max() < 5 * np.sqrt(expected / 2)  # binomial with chance one half


def test_negatives_depend_on_the_evaluation_seed_alone() -> None:
    task = task_of(small_split(users=30, items=150, per_user=5), "test")
    for protocol in ("sampled", "paper"):
        assert np.array_equal(sampled(task, protocol), sampled(task, protocol))
        assert not np.array_equal(sampled(task, protocol), sampled(task, protocol, seed=1))
    assert sample_negatives("full", task, 0) is None


def test_raw_ids_leave_phantoms_between_them() -> None:
    assert raw_items(Vocabulary(pa.array([7, 4, 5]))).tolist() == [1, 2, NOTHING, 0]
    far_apart = Vocabulary(pa.array([-100, 99, 100, *range(98)], pa.int8()))
    assert raw_items(far_apart)[[0, 199, 200]].tolist() == [0, 1, 2]


@pytest.mark.parametrize("ids", [["7", "4", "5"], [1, 2, 7], [1, 2, 10**18]])
def test_ids_without_a_raw_range_are_taken_as_they_are_coded(ids: list[int] | list[str]) -> None:
    assert raw_items(Vocabulary(pa.array(ids))).tolist() == [0, 1, 2]


def test_paper_draws_may_be_seen_items_and_count_copies_of_the_target() -> None:
    split = small_split(users=200, items=12, per_user=6)
    task = task_of(split, "test")
    negatives = sample_negatives("paper", task, 0)
    assert negatives is not None
    # Copies of the target were taken out and counted: about a twelfth of a hundred draws.
    assert np.array_equal((negatives.items == NOTHING).sum(axis=1), negatives.copies)
    assert 7 < negatives.copies.mean() < 10
    assert not (negatives.items == task.targets[:, None]).any()
    assert len(set(negatives.items[0])) == 12  # eleven other items, seen or not, and the places of the copies
