from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from small import small_interactions
from towpath.data.interactions import COLUMNS, MISSING_TIME, Interactions
from towpath.data.split import (
    PARTS,
    Split,
    load_split,
    save_split,
    split_at_random,
    split_by_time,
    split_leave_last_two,
)
from towpath.data.vocabulary import Vocabulary
from towpath.errors import ArtifactError, ConfigError, DataError
from towpath.files import Form
from towpath.rng import Rng


@st.composite
def interactions(draw: st.DrawFn) -> Interactions:
    """Some users of one event or more, one of them long enough to be split; times with many ties."""
    lengths = np.array([3, *draw(st.lists(st.integers(1, 6), max_size=6))])
    n = int(lengths.sum())
    times = np.array(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), dtype=np.int64)
    users = np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)
    order = np.lexsort((times, users))
    return Interactions(
        users=users,
        items=np.arange(n, dtype=np.int32),  # each row its own item, so that rows can be told apart
        user_ids=Vocabulary(pa.array([f"u{u}" for u in range(len(lengths))])),
        item_ids=Vocabulary(pa.array(range(n))),
        times=times[order],
        values=np.arange(n, dtype=np.float32),
    )


def assert_partition(whole: Interactions, split: Split) -> None:
    parts = [split.train, split.validation, split.test]
    assert sorted(np.concatenate([part.items for part in parts]).tolist()) == whole.items.tolist()
    for part in parts:
        # The items are the rows' numbers: order and all columns must be those of the whole.
        assert (np.diff(part.items) > 0).all()
        for name in COLUMNS:
            column = getattr(part, name)
            if column is not None:
                assert (column == getattr(whole, name)[part.items]).all()
    short = np.flatnonzero(whole.histories.lengths < 3)
    assert not np.isin(short, np.concatenate([split.validation.users, split.test.users])).any()


@settings(max_examples=30, deadline=None)
@given(interactions())
def test_leave_last_two_takes_the_last_and_the_one_before(whole: Interactions) -> None:
    split = split_leave_last_two(whole)
    assert_partition(whole, split)
    long = np.flatnonzero(whole.histories.lengths >= 3)
    ends = whole.histories.starts[1:][long]
    assert split.test.items.tolist() == (ends - 1).tolist()
    assert split.validation.items.tolist() == (ends - 2).tolist()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(interactions(), st.integers(0, 5))
def test_random_splits_partition_and_follow_the_seed(whole: Interactions, seed: int) -> None:
    try:
        split = split_at_random(whole, validation_share=0.3, test_share=0.3, rng=Rng(seed))
    except DataError:
        reject()  # a part came out empty
    assert_partition(whole, split)
    again = split_at_random(whole, validation_share=0.3, test_share=0.3, rng=Rng(seed))
    assert again.fingerprint == split.fingerprint


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(interactions())
def test_time_splits_partition_and_never_learn_from_the_future(whole: Interactions) -> None:
    try:
        split = split_by_time(whole, validation_share=0.2, test_share=0.2)
    except DataError:
        reject()  # too few distinct times
    assert_partition(whole, split)
    long = whole.histories.lengths[split.train.users] >= 3
    assert split.train.times is not None
    assert split.validation.times is not None
    assert split.test.times is not None
    assert split.train.times[long].max(initial=-1) < split.validation.times.min()
    assert split.validation.times.max() < split.test.times.min()


def test_shares_come_out_as_asked() -> None:
    whole = small_interactions(users=500)
    data = Interactions(
        **{**vars(whole), "times": np.sort(Rng(0).numpy("t").random(len(whole)) * 1e9).astype(np.int64)}
    )
    for split in (
        split_by_time(data, validation_share=0.1, test_share=0.2),
        split_at_random(data, validation_share=0.1, test_share=0.2, rng=Rng(1)),
    ):
        assert len(split.validation) / len(data) == pytest.approx(0.1, abs=0.01)
        assert len(split.test) / len(data) == pytest.approx(0.2, abs=0.01)


def test_without_times_the_order_of_the_file_splits_and_says_so() -> None:
    whole = small_interactions()
    untimed = Interactions(whole.users, whole.items, whole.user_ids, whole.item_ids)
    split = split_leave_last_two(untimed)
    assert "order of the file" in split.description
    assert len(split.test) == whole.n_users
    with pytest.raises(DataError, match="no time column"):
        split_by_time(untimed)


def test_missing_times_are_refused_with_count_and_example() -> None:
    whole = small_interactions()
    assert whole.times is not None
    times = whole.times.copy()
    times[::12] = MISSING_TIME
    holes = Interactions(whole.users, whole.items, whole.user_ids, whole.item_ids, times)
    item = whole.item_ids.ids(whole.items[:1])[0]
    expected = rf"needs a time for every interaction; 60 of 720 have none \(first: user 'u0', item '{item}'\)"
    for split in (split_by_time, split_leave_last_two):
        with pytest.raises(DataError, match=expected):
            split(holes)
    assert len(holes.timed()) == 660
    assert len(split_leave_last_two(holes.timed()).test) == 60


def test_a_split_that_leaves_a_part_empty_is_refused() -> None:
    short = small_interactions(per_user=2)
    with pytest.raises(DataError, match="only users with at least 3 of them are split"):
        split_leave_last_two(short)


@pytest.mark.parametrize("shares", [(0, 0.1), (0.1, 1), (0.5, 0.5), (-0.1, 0.2), (float("nan"), 0.1)])
def test_shares_that_cannot_be_are_refused(shares: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="together below 1"):
        split_by_time(small_interactions(), validation_share=shares[0], test_share=shares[1])


def test_equal_timestamps_only_cannot_be_cut() -> None:
    whole = small_interactions()
    same = Interactions(
        whole.users, whole.items, whole.user_ids, whole.item_ids, np.zeros(len(whole), np.int64)
    )
    with pytest.raises(DataError, match="distinct times"):
        split_by_time(same)


def test_the_fingerprint_sees_every_change() -> None:
    whole = small_interactions()
    first = split_leave_last_two(whole)
    assert first.fingerprint == split_leave_last_two(small_interactions()).fingerprint
    other_ids = Vocabulary(pa.array([f"v{n}" for n in range(whole.n_users)]))
    times = whole.times if whole.times is None else whole.times + 1
    changes = [
        Interactions(**{**vars(whole), "user_ids": other_ids}),
        Interactions(whole.users, whole.items, whole.user_ids, whole.item_ids, times),
        Interactions(whole.users, whole.items, whole.user_ids, whole.item_ids),
    ]
    prints = {first.fingerprint, *(split_leave_last_two(change).fingerprint for change in changes)}
    described = Split(first.train, first.validation, first.test, "otherwise").fingerprint
    assert len(prints | {described}) == 5


@settings(max_examples=10, deadline=None)
@given(whole=interactions())
def test_a_saved_split_comes_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, whole: Interactions
) -> None:
    folder = tmp_path_factory.mktemp("splits") / "split"
    split = split_leave_last_two(whole)
    save_split(split, folder)
    loaded = load_split(folder)
    assert loaded.fingerprint == split.fingerprint
    for part in PARTS:
        for name in COLUMNS:
            one, other = getattr(getattr(split, part), name), getattr(getattr(loaded, part), name)
            assert (one is None) == (other is None)
            assert one is None or (
                one.dtype == other.dtype and (one == other).all() and other.flags.writeable
            )
    assert loaded.train.user_ids == split.train.user_ids


def test_saving_replaces_an_older_split_and_leaves_nothing_else(tmp_path: Path) -> None:
    save_split(split_leave_last_two(small_interactions(seed=1)), tmp_path / "split")
    second = split_leave_last_two(small_interactions(seed=2))
    save_split(second, tmp_path / "split")
    assert load_split(tmp_path / "split").fingerprint == second.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["split"]


def test_every_changed_byte_and_every_cut_is_noticed(tmp_path: Path) -> None:
    save_split(split_leave_last_two(small_interactions()), tmp_path / "split")
    for path in sorted((tmp_path / "split").iterdir()):
        whole = path.read_bytes()
        for place in np.linspace(0, len(whole) - 1, 12).astype(int):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(ArtifactError):
                load_split(tmp_path / "split")
        path.write_bytes(whole[:-1])
        with pytest.raises(ArtifactError):
            load_split(tmp_path / "split")
        path.unlink()
        with pytest.raises(ArtifactError):
            load_split(tmp_path / "split")
        path.write_bytes(whole)
    assert load_split(tmp_path / "split").fingerprint


def test_a_split_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towpath.data.split.STORED_AS", Form("split", 99))
    save_split(split_leave_last_two(small_interactions()), tmp_path / "split")
    monkeypatch.undo()
    with pytest.raises(ArtifactError, match="format 99, and this towpath reads format 1"):
        load_split(tmp_path / "split")


def test_a_place_that_cannot_be_written_is_said_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArtifactError, match="cannot be written"):
        save_split(split_leave_last_two(small_interactions()), tmp_path / "file" / "split")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def shown_to_one_user(labels: list[int], requests: list[int] | None = None) -> Interactions:
    """Rows of one user, one after the other; each row its own item."""
    n = len(labels)
    return Interactions(
        users=np.zeros(n, dtype=np.int32),
        items=np.arange(n, dtype=np.int32),
        user_ids=Vocabulary(pa.array(["u"])),
        item_ids=Vocabulary(pa.array(range(n))),
        times=np.arange(n, dtype=np.int64),
        labels=np.array(labels, dtype=np.bool_),
        requests=None if requests is None else np.array(requests, dtype=np.int64),
        propensities=np.linspace(0.1, 0.9, n, dtype=np.float32),
    ).positives


def items_of(split: Split) -> list[list[int]]:
    return [part.items.tolist() for part in (split.train, split.validation, split.test)]


def shown_items_of(split: Split) -> list[list[int]]:
    return [part.rows.items.tolist() for part in (split.train, split.validation, split.test)]


def test_what_was_shown_but_not_clicked_is_never_a_positive() -> None:
    split = split_leave_last_two(shown_to_one_user([0, 1, 0, 1, 0, 1, 0, 1, 0]))
    assert items_of(split) == [[1, 3], [5], [7]]
    assert shown_items_of(split) == [[0, 1, 2, 3, 4], [5, 6], [7, 8]]


def test_the_rows_of_a_request_stay_together() -> None:
    whole = shown_to_one_user([1, 0, 1, 0, 0, 1, 1, 0], requests=[0, 0, 1, 1, 2, 2, 3, 3])
    split = split_leave_last_two(whole)
    assert items_of(split) == [[0, 2], [5], [6]]
    assert shown_items_of(split) == [[0, 1, 2, 3], [4, 5], [6, 7]]


def test_an_impression_log_can_be_split_by_time_and_at_random() -> None:
    whole = shown_to_one_user([1, 0] * 10)
    by_time = split_by_time(whole, validation_share=0.2, test_share=0.2)
    assert items_of(by_time) == [[0, 2, 4, 6, 8, 10], [12, 14], [16, 18]]
    at_random = split_at_random(whole, validation_share=0.3, test_share=0.3, rng=Rng(0))
    assert sorted(i for items in shown_items_of(at_random) for i in items) == list(range(20))
    assert all(item % 2 == 0 for items in items_of(at_random) for item in items)


def test_a_stored_split_keeps_what_was_shown(tmp_path: Path) -> None:
    split = split_leave_last_two(shown_to_one_user([0, 1, 0, 1, 0, 1, 0, 1, 0]))
    save_split(split, tmp_path / "split")
    loaded = load_split(tmp_path / "split")
    assert loaded.fingerprint == split.fingerprint
    assert shown_items_of(loaded) == shown_items_of(split)


def test_joined_parts_keep_their_columns_features_and_impressions() -> None:
    whole = shown_to_one_user([0, 1, 0, 1, 0, 1, 0, 1, 0])
    joined = split_leave_last_two(whole).before_test
    assert joined.items.tolist() == [1, 3, 5]
    assert joined.propensities is not None
    assert np.allclose(joined.propensities, np.linspace(0.1, 0.9, 9)[[1, 3, 5]])
    assert joined.rows.items.tolist() == [0, 1, 2, 3, 4, 5, 6]
