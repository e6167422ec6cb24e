import numpy as np
import pytest

from towpath.kernels import impression_rows as rows_of
from towpath.kernels.impression_rows import ImpressionColumns, impression_rows, impression_rows_plainly


def log(size: int) -> ImpressionColumns:
    rng = np.random.default_rng(size)
    clicks, chosen = (rng.integers(0, 2, size).astype(np.float32) for _ in range(2))
    return ImpressionColumns(np.sort(rng.integers(0, 9, size)), rng.integers(0, 50, size), clicks, chosen)


@pytest.mark.parametrize("size", [1, 2, 40])
def test_the_compiled_loop_fills_what_numpy_does(size: int) -> None:
    columns = log(size)
    rows = np.sort(np.random.default_rng(0).permutation(size)[: max(1, size // 2)])
    ours, plain = impression_rows(columns, rows), impression_rows_plainly(columns, rows)
    for mine, true in zip(ours, plain, strict=True):
        assert mine.dtype == true.dtype
        assert np.array_equal(mine, true)


def test_rows_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = np.ones(3, np.float32)
    columns = ImpressionColumns(
        np.array([4, 4, 7]), np.array([1, 2, 3]), np.array([1, 0, 1], np.float32), ones.copy()
    )
    columns.chosen[2] = 0  # a model of this log showed it: only r learns from it
    for available in (True, False):
        monkeypatch.setattr(rows_of, "AVAILABLE", available)
        found = impression_rows(columns, np.arange(3))
        assert found.once.tolist() == [4, 7]
        assert found.targets[:, 0].tolist() == [[1, 1, 1], [1, 0, 1], [1, 1, 1]]
        assert found.counts[:, 0].tolist() == [[1, 1, 1], [1, 1, 0], [0, 1, 0]]
        assert found.per_user.tolist() == [[2, 0], [2, 1], [1, 0]]
