import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.abtest.holm import holm
from towpath.stats.sample_ratio import check_split, e_value


def test_holm_by_hand():
    # Sorted .01, .02, .5 times 3, 2, 1.
    assert holm([0.02, 0.5, 0.01]) == [0.04, 0.5, 0.03]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_lies_between_plain_and_bonferroni(p):
    adjusted = holm(p)
    assert all(a >= q - 1e-12 for a, q in zip(adjusted, p, strict=True))
    assert all(a <= min(1, len(p) * q) + 1e-9 or a <= max(adjusted) for a, q in zip(adjusted, p, strict=True))
    assert min(adjusted) == pytest.approx(min(1.0, len(p) * min(p)))


def test_evidence_has_mean_one_under_the_expected_split():
    # Over all sequences of six users in three arms.
    shares = (0.5, 0.3, 0.2)
    mean = 0.0
    for drawn in product(range(3), repeat=6):
        counts = np.bincount(drawn, minlength=3)
        mean += math.prod(shares[k] for k in drawn) * e_value(counts.tolist(), shares)
    assert mean == pytest.approx(1.0)


def test_a_split_that_is_off_is_found_and_one_that_is_not_is_not():
    assert not check_split(("a", "b"), (5_050, 4_950), (0.5, 0.5)).mismatch
    off = check_split(("a", "b"), (5_300, 4_700), (0.5, 0.5))
    assert off.mismatch
    assert off.p_value < 0.01
    assert check_split(("a", "b"), (10, 1), (1.0, 0.0)).mismatch
    assert check_split(("a", "b"), (0, 0), (0.5, 0.5)).e_value == pytest.approx(1)
    assert check_split(("a", "b"), (900_000, 100_000), (0.5, 0.5)).e_value == math.inf
