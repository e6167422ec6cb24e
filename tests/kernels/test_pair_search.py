import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.kernels.pair_search import PairSearch

USERS, ITEMS = 7, 11


@given(st.sets(st.tuples(st.integers(0, USERS - 1), st.integers(0, ITEMS - 1))))
def test_every_pair_is_found_exactly_if_it_is_known(known: set[tuple[int, int]]) -> None:
    keys = np.array(sorted(u * ITEMS + i for u, i in known), dtype=np.int64)
    search = PairSearch(keys, USERS, ITEMS)
    users, items = (part.ravel() for part in np.mgrid[:USERS, :ITEMS])
    expected = [(u, i) in known for u, i in zip(users, items, strict=True)]
    assert search.contains(users, items).tolist() == expected
    assert search.contains_plainly(users, items).tolist() == expected


def test_compiled_and_plain_answers_agree_on_many_pairs() -> None:
    pytest.importorskip("numba", reason="the compiled kernels need the extra `fast`")
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(5_000 * 3_000, size=200_000))
    search = PairSearch(keys, 5_000, 3_000)
    asked = np.concatenate([keys[::7], rng.integers(5_000 * 3_000, size=50_000)])
    users, items = asked // 3_000, asked % 3_000
    np.testing.assert_array_equal(search.contains(users, items), search.contains_plainly(users, items))
