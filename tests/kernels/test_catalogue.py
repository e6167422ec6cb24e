import numpy as np
import pytest

pytest.importorskip("numba")

from towpath.kernels.catalogue import MOST, rank_catalogue, usable


@pytest.mark.parametrize("dim", [1, 3, 4, 33])
def test_scores_and_lists_are_those_of_numpy(dim: int) -> None:
    draw = np.random.default_rng(dim)
    vector = draw.normal(size=dim + 1).astype(np.float32)
    items, biases = (draw.normal(size=shape).astype(np.float32) for shape in ((dim, 500), 500))
    hidden = draw.choice(500, 70, replace=False).astype(np.int32)
    scores, values, places = rank_catalogue(vector, items, biases, hidden, 11)
    plain = vector[:-1] @ items + biases + vector[-1]
    plain[hidden] = -np.inf
    np.testing.assert_allclose(scores, plain, rtol=1e-5, atol=1e-5)
    assert places == np.argsort(-scores, kind="stable")[:11].tolist()
    assert values == scores[places].tolist()


def test_equal_scores_are_in_order_and_hidden_ones_last() -> None:
    items, biases = np.zeros((2, 4), np.float32), np.zeros(4, np.float32)
    _, values, places = rank_catalogue(np.ones(3, np.float32), items, biases, np.array([1, 2], np.int32), 3)
    assert places[:2] == [0, 3]
    assert values == [1.0, 1.0, -np.inf]


def test_long_lists_are_for_others() -> None:
    assert usable(MOST)
    assert not usable(MOST + 1)
