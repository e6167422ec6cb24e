"""Two tables of events as one, in the order that a sort of all rows would give."""

import numpy as np
import pytest

from small import small_interactions
from towpath import mapped
from towpath.data.interactions import Interactions
from towpath.data.joining import join


def parts_of(seed: int, timed: bool) -> tuple[Interactions, Interactions]:
    """Random parts of the same events, with ties in time and users who have nothing in one of them."""
    draw = np.random.default_rng(seed)
    events = small_interactions(users=20, items=30, per_user=int(draw.integers(1, 9)), seed=seed)
    times = np.sort(draw.integers(0, 5, (20, len(events) // 20)), axis=1).ravel()
    events = Interactions(
        events.users, events.items, events.user_ids, events.item_ids, times if timed else None
    )
    chosen = draw.random(len(events)) < draw.random()
    return events.where(chosen), events.where(~chosen)


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("mapped_from", [10, 1 << 24])
@pytest.mark.parametrize("seed", range(5))
def test_joining_gives_the_order_of_a_stable_sort(
    seed: int, mapped_from: int, timed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "MAPPED_FROM", mapped_from)
    first, second = parts_of(seed, timed)
    found = join(first, second)
    users, items = (np.concatenate([getattr(p, c) for p in (first, second)]) for c in ("users", "items"))
    keys = [users]
    if timed:
        assert found.times is not None
        keys = [np.concatenate([first.times, second.times]), users]
    order = np.lexsort(keys)
    assert np.array_equal(found.users, users[order])
    assert np.array_equal(found.items, items[order])
    if timed:
        assert np.array_equal(found.times, keys[0][order])


def test_codes_are_counted_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.array([3, 1, 1, 0, 3, 3], dtype=np.int32)
    monkeypatch.setattr(mapped, "CHUNK_ROWS", 4)
    assert mapped.count_codes(codes, 5).tolist() == [1, 2, 0, 3, 0]
    assert mapped.count_codes(codes[:0], 2).tolist() == [0, 0]
