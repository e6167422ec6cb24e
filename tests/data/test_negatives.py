import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixed_scorers import events
from small import small_interactions
from towpath.data.interactions import Interactions
from towpath.data.negatives import NegativeSampler, PairSet
from towpath.data.vocabulary import Vocabulary
from towpath.errors import DataError
from towpath.rng import Rng


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), min_size=1))
def test_a_pair_set_contains_what_was_put_in_and_nothing_else(pairs: list[tuple[int, int]]) -> None:
    grid_users, grid_items = np.divmod(np.arange(21 * 31, dtype=np.int64), 31)
    found = PairSet(events(sorted(pairs), users=21, items=31)).contains(grid_users, grid_items)
    assert {(u, i) for u, i in zip(grid_users[found], grid_items[found], strict=True)} == set(pairs)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_repeated_pairs_count_once_however_few_are_worked_on_at_a_time(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("towpath.mapped.CHUNK_ROWS", rows)
    pairs = PairSet(events([(0, 0), (0, 0), (0, 0), (0, 2), (1, 1), (1, 1), (1, 4)], users=3, items=5))
    assert pairs.items_per_user().tolist() == [2, 2, 0]


def test_negatives_are_never_training_items() -> None:
    train = small_interactions()
    drawn = NegativeSampler(train).sample(train.users.astype(np.int64), 5, Rng(0).numpy("negatives"))
    taken = set(zip(train.users.tolist(), train.items.tolist(), strict=True))
    assert drawn.shape == (len(train), 5)
    assert not any((u, i) in taken for u, row in zip(train.users, drawn, strict=True) for i in row)


def test_negatives_are_uniform_over_unseen_items() -> None:
    train = small_interactions(users=2, items=40, per_user=10)
    drawn = NegativeSampler(train).sample(np.zeros(30_000, dtype=np.int64), 1, Rng(1).numpy("negatives"))
    counts = np.bincount(drawn.ravel(), minlength=40)
    unseen = counts[counts > 0]
    assert len(unseen) == 30
    assert abs(unseen - 1000).max() < 6 * np.sqrt(1000)  # six standard deviations of a binomial count


def test_same_generator_name_same_negatives() -> None:
    train, users = small_interactions(), np.arange(60)
    first, again = (NegativeSampler(train).sample(users, 3, Rng(3).numpy("negatives", 1)) for _ in range(2))
    assert np.array_equal(first, again)


def owner_of(taken: int, items: int) -> Interactions:
    ids = Vocabulary(pa.array(range(items)))
    return Interactions(
        np.zeros(taken, dtype=np.int32), np.arange(taken, dtype=np.int32), Vocabulary(pa.array(["x"])), ids
    )


def test_a_user_who_lacks_one_item_always_gets_it() -> None:
    drawn = NegativeSampler(owner_of(4_999, 5_000)).sample(np.zeros(10, dtype=np.int64), 3, Rng(0).numpy("n"))
    assert (drawn == 4_999).all()


def test_a_user_who_has_everything_is_named() -> None:
    sampler = NegativeSampler(owner_of(20, 20))
    assert sampler.exhausted.tolist() == [0]
    with pytest.raises(DataError, match="all 20 items"):
        sampler.sample(np.zeros(1, dtype=np.int64), 1, Rng(0).numpy("n"))
