from collections import Counter

import numpy as np
import pytest

from towpath import mapped
from towpath.kernels import batch_shuffle
from towpath.kernels.batch_shuffle import assign_batches


@pytest.mark.parametrize(("rows", "size"), [(1, 1), (5, 8), (8, 8), (9, 4), (1_000, 64), (50_000, 4_096)])
def test_every_row_is_assigned_once_and_batches_are_full_and_in_order(rows: int, size: int) -> None:
    assignment = assign_batches(rows, size, np.random.default_rng(0))
    order = assignment.column(np.arange(rows, dtype=np.int32))
    assert sorted(order.tolist()) == list(range(rows))
    for start in range(0, rows, size):
        batch = order[start : start + size]
        assert (np.diff(batch) > 0).all()
        assert (assignment.batches[batch] == start // size).all()


def test_every_way_to_part_the_rows_is_equally_likely() -> None:
    """Four rows in batches of two and two: six ways, each within five standard deviations of a sixth."""
    rng, draws = np.random.default_rng(1), 6_000
    ways = Counter(tuple(assign_batches(4, 2, rng).batches.tolist()) for _ in range(draws))
    assert len(ways) == 6
    assert all(abs(count - draws / 6) < 5 * np.sqrt(draws * 5 / 36) for count in ways.values())


def test_a_small_last_batch_is_as_likely_for_any_row() -> None:
    rng, draws = np.random.default_rng(2), 4_000
    last = sum(np.flatnonzero(assign_batches(7, 3, rng).batches == 2)[0] == 6 for _ in range(draws))
    assert abs(last - draws / 7) < 5 * np.sqrt(draws * 6 / 49)


def test_columns_and_draws_are_the_same_with_and_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the compiled kernels need the extra `fast`")
    values = np.random.default_rng(3).integers(100, size=20_000, dtype=np.int32)
    fused = assign_batches(len(values), 500, np.random.default_rng(4))
    ours = fused.column(values)
    monkeypatch.setattr(batch_shuffle, "AVAILABLE", False)
    plain = assign_batches(len(values), 500, np.random.default_rng(4))
    np.testing.assert_array_equal(fused.batches, plain.batches)
    np.testing.assert_array_equal(ours, plain.column(values))


def test_batches_do_not_depend_on_how_many_rows_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = assign_batches(10_001, 256, np.random.default_rng(0))
    monkeypatch.setattr(mapped, "CHUNK_ROWS", 77)
    monkeypatch.setattr(mapped, "MAPPED_FROM", 100)
    pieces = assign_batches(10_001, 256, np.random.default_rng(0))
    assert np.array_equal(whole.batches, pieces.batches)
    values = np.arange(10_001, dtype=np.float32)
    assert np.array_equal(whole.column(values), pieces.column(values))
