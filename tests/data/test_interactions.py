import gc
import weakref

import numpy as np

from small import small_interactions
from towpath.data.interactions import MISSING_TIME, PADDING, Interactions


def test_timed_rows_are_those_with_a_time() -> None:
    whole = small_interactions(users=2, per_user=3)
    times = np.array([1, MISSING_TIME, 2, MISSING_TIME, 3, 4])
    holes = Interactions(whole.users, whole.items, whole.user_ids, whole.item_ids, times)
    assert holes.timed().items.tolist() == whole.items[[0, 2, 4, 5]].tolist()
    untimed = Interactions(whole.users, whole.items, whole.user_ids, whole.item_ids)
    assert len(untimed.timed()) == 0


def test_histories_are_each_users_items_in_order() -> None:
    data = small_interactions(users=3, per_user=4)
    kept = data.where(data.users != 1)
    assert kept.histories.lengths.tolist() == [4, 0, 4]
    rows, items = kept.histories.pairs_of(np.array([2, 1]))
    assert rows.tolist() == [0, 0, 0, 0]
    assert items.tolist() == data.items[8:].tolist()
    padded = kept.histories.padded(np.array([1, 2]), 2)
    assert padded.tolist() == [[PADDING, PADDING], data.items[10:].tolist()]


def test_a_table_is_freed_as_soon_as_nobody_holds_it() -> None:
    gc.disable()  # circles would be found in the end, but a few large arrays do not make Python look
    try:
        table = small_interactions()
        part = table.where(table.users > 0).positives
        freed = weakref.ref(part.users)
        del part
        assert freed() is None
    finally:
        gc.enable()
