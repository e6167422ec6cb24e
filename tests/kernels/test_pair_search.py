import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.kernels.pair_search import PairSearch

USERS, ITEMS = 7, 11


@settings(deadline=None)  # the first call compiles
@given(st.sets(st.tuples(st.integers(0, USERS - 1), st.integers(0, ITEMS - 1))))
def test_every_pair_is_found_exactly_if_it_is_known(known: set[tuple[int, int]]) -> None:
    keys = np.array(sorted(u * ITEMS + i for u, i in known), dtype=np.int64)
    search = PairSearch(keys, USERS, ITEMS)
    users, items = (part.ravel() for part in np.mgrid[:USERS, :ITEMS])
    expected = [(u, i) in known for u, i in zip(users, items, strict=True)]
    assert search.contains(users, items).tolist() == expected
    assert search.contains_plainly(users, items).tolist() == expected


# Sparse pairs are found by a filter and a search, dense ones by a bit each.
@pytest.fixture(params=[100_000, 2_000_000], ids=["sparse", "dense"])
def many(request: pytest.FixtureRequest) -> PairSearch:
    rng = np.random.default_rng(0)
    return PairSearch(np.unique(rng.integers(5_000 * 3_000, size=request.param)), 5_000, 3_000)


def test_compiled_and_plain_answers_agree_on_many_pairs(many: PairSearch) -> None:
    pytest.importorskip("numba", reason="the compiled kernels need the extra `fast`")
    rng = np.random.default_rng(1)
    asked = np.concatenate([many.pairs.keys[::7], rng.integers(5_000 * 3_000, size=50_000)])
    users, items = asked // 3_000, asked % 3_000
    found = many.contains(users, items)
    np.testing.assert_array_equal(found, many.contains_plainly(users, items))
    assert found[:-50_000].all()
    assert not found.all()


def test_a_dense_set_has_a_bit_for_every_pair_and_a_sparse_one_has_not(many: PairSearch) -> None:
    assert many.pairs.exact == (len(many.pairs.keys) > 1_000_000)
    assert many.pairs.bits.nbytes <= 16 * len(many.pairs.keys)


@pytest.mark.parametrize("rounds", [1, 2, 31])
def test_draws_are_the_same_with_and_without_numba(many: PairSearch, rounds: int) -> None:
    pytest.importorskip("numba", reason="the compiled kernels need the extra `fast`")
    users = np.random.default_rng(2).integers(5_000, size=4_000)
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    fused, plain = np.full((2, 4_000, 4), -7)
    np.testing.assert_array_equal(
        many.draw_unknown(users, fused, 1, ours, rounds),
        many.draw_unknown_plainly(users, plain, 1, theirs, rounds),
    )
    np.testing.assert_array_equal(fused, plain)
    assert (fused[:, 0] == -7).all()
    assert (fused[:, 1:] >= 0).all()
    assert ours.integers(2**40) == theirs.integers(2**40)  # both generators have come as far


def test_what_is_drawn_is_unknown_but_at_the_places_that_are_named(many: PairSearch) -> None:
    users = np.random.default_rng(4).integers(5_000, size=2_000)
    items = np.empty((2_000, 2), dtype=np.int64)
    still_open = many.draw_unknown(users, items, 0, np.random.default_rng(5), 1)
    known = many.contains(np.repeat(users, 2), items.ravel())
    np.testing.assert_array_equal(np.flatnonzero(known), still_open)
    assert len(still_open) > 0
    assert len(many.draw_unknown(users, items, 0, np.random.default_rng(5), 31)) == 0


@pytest.mark.parametrize("n_items", [40, 100_000])  # a bit for every pair, and a filter
def test_open_weights_are_those_of_pairs_that_are_not_known(n_items: int) -> None:
    rng = np.random.default_rng(3)
    keys = np.unique(rng.integers(30, size=400) * n_items + rng.integers(40, size=400))
    search = PairSearch(keys, 30, n_items)
    users, items = np.arange(5, 25), rng.permutation(40)[:11]
    each = rng.random(len(users), dtype=np.float32)
    known = np.isin(users * n_items + items[:, None], keys)
    found, plainly = np.empty((2, len(items), len(users)), np.float32)
    total = search.open_weights(users, items, each, found)
    assert known.any()
    assert np.array_equal(found, np.where(known, 0, each))
    assert total == pytest.approx(found.sum(dtype=np.float64), rel=1e-6)
    assert search.open_weights_plainly(users, items, each, plainly) == pytest.approx(total, rel=1e-6)
    assert np.array_equal(found, plainly)
