import re
import sqlite3

import pytest

from small_logs import DAY, assigned, click, order, request
from towpath.errors import DataError
from towpath.serving.exposure_log.follow import SqliteFollower
from towpath.serving.exposure_log.read import files_of, read_log
from towpath.serving.exposure_log.sqlite import SqliteStore, delete_user
from towpath.serving.exposure_log.store import LogError, LogSettings, open_store


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "exposures-0.sqlite")
    yield store
    store.close()


def test_what_was_written_is_read_again(store, tmp_path):
    rows = [request(0, "ann", "a", 5), request(1, None, "b", 6), click("e", 0, "a", 7), assigned(1, "a", "b")]
    store.write(rows)
    log = read_log(str(tmp_path))
    assert log.requests.to_pylist() == [rows[0]._asdict(), rows[1]._asdict()]
    assert log.outcomes.to_pylist() == [rows[2]._asdict()]
    assert log.assignments.to_pylist() == [rows[3]._asdict()]


def test_the_same_id_counts_once(store, tmp_path):
    store.write([request(0, "ann", "a", 5), request(0, "bob", "a", 6)])
    store.write([request(0, "bob", "a", 6), click("e", 0, "a", 7), click("e", 0, "b", 8)])
    log = read_log(str(tmp_path))
    assert log.requests["user_id"].to_pylist() == ["ann"]
    assert log.outcomes["item_id"].to_pylist() == ["a"]


def test_every_commit_is_synced(store):
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def write_until_refused(store):
    """How many rows were acknowledged before one batch of ten was refused, and what was said."""
    for batch in range(1_000):
        try:
            store.write([request(10 * batch + n, "ann", "a", 5, items="x" * 200) for n in range(10)])
        except LogError as error:
            return 10 * batch, str(error)
    pytest.fail("never refused")


def test_a_full_log_refuses_whole_batches_and_goes_on_when_there_is_room(tmp_path):
    store = SqliteStore(tmp_path / "exposures-0.sqlite", most_megabytes=1)
    written, said = write_until_refused(store)
    assert written > 100
    assert re.search(r"cannot be written .*full.* raise the limit", said)
    # What was acknowledged is there, what was refused is not.
    assert len(read_log(str(tmp_path)).requests) == written
    assert store.prune(before=6) > 0
    store.write([request(10_000_000, "ann", "a", 7)])
    assert read_log(str(tmp_path)).requests["request_id"].to_pylist()[-1] == "r10000000"
    store.close()


def test_old_rows_are_pruned_from_the_oldest_on(store, tmp_path):
    store.write(
        [request(n, "ann", "a", n) for n in range(2_500)] + [click("e", 0, "a", 1), click("f", 9, "a", DAY)]
    )
    counts = [store.prune(before=2_400) for _ in range(4)]
    assert counts == [1_001, 1_000, 400, 0]
    log = read_log(str(tmp_path))
    assert log.requests["time"].to_pylist() == list(range(2_400, 2_500))
    assert log.outcomes["event_id"].to_pylist() == ["f"]


def test_a_user_is_deleted_from_all_files_and_their_bytes_are_gone(tmp_path):
    secret = "ann-with-a-long-and-rare-name"
    stores = [open_store(LogSettings(str(tmp_path)), worker) for worker in (0, 1)]
    stores[0].write([request(0, secret, "a", 5), request(1, "bob", "a", 6)])
    stores[1].write([order("e", 0, 7), order("f", 1, 8)])  # ann's order came to the other worker
    for store in stores:
        store.close()
    files = files_of(tmp_path)
    assert any(secret.encode() in file.read_bytes() for file in files)
    assert delete_user(files, secret) == 1
    log = read_log(str(tmp_path))
    assert log.requests["user_id"].to_pylist() == ["bob"]
    assert log.outcomes["event_id"].to_pylist() == ["f"]
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())
    assert delete_user(files, "nobody") == 0


def test_a_follower_notices_deletions_and_can_begin_again(tmp_path):
    stores = [open_store(LogSettings(str(tmp_path)), worker) for worker in (0, 1)]
    stores[0].write([request(0, "ann", "a", 5), request(1, "bob", "a", 6), click("e", 0, "b", 7)])
    stores[1].write([click("f", 1, "c", 8)])
    follower = SqliteFollower(tmp_path)
    before = follower.deletions()
    assert sorted(follower.new()) == [("ann", "b"), ("bob", "c")]
    assert follower.deletions() == before == 0
    delete_user(files_of(tmp_path), "ann")
    assert follower.deletions() > before
    assert follower.new() == []
    follower.restart()
    assert follower.new() == [("bob", "c")]
    for one in (follower, *stores):
        one.close()


def test_a_follower_gives_each_list_once_and_those_of_nobody_never(tmp_path):
    stores = [open_store(LogSettings(str(tmp_path)), worker) for worker in (0, 1)]
    stores[0].write([request(0, "ann", "a", 5), request(1, None, "b", 6)])
    follower = SqliteFollower(tmp_path)
    assert follower.shown() == [("ann", 5, '["a", "b", "c"]')]
    stores[1].write([request(2, "bob", "a", 7, items="xy")])
    assert follower.shown() == [("bob", 7, '["x", "y"]')]
    assert follower.shown() == []
    delete_user(files_of(tmp_path), "ann")
    follower.restart()
    assert follower.shown() == [("bob", 7, '["x", "y"]')]
    for one in (follower, *stores):
        one.close()


def test_a_place_without_a_log_and_a_damaged_file_are_said(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        read_log(str(tmp_path / "none"))
    with pytest.raises(DataError, match="no exposures"):
        read_log(str(tmp_path))
    (tmp_path / "exposures-0.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(DataError, match="cannot be read as an exposure log"):
        read_log(str(tmp_path))
    with pytest.raises(LogError, match="cannot be opened"):
        SqliteStore(tmp_path / "exposures-0.sqlite")


def test_the_log_can_be_read_while_it_is_written(store, tmp_path):
    store.write([request(0, "ann", "a", 5)])
    reader = sqlite3.connect(f"file:{store.path}?mode=ro", uri=True)
    reader.execute("BEGIN")
    assert reader.execute("SELECT COUNT(*) FROM requests").fetchone() == (1,)
    store.write([request(1, "ann", "a", 6)])  # a reader in the middle of its work is in nobody's way
    assert reader.execute("SELECT COUNT(*) FROM requests").fetchone() == (1,)
    reader.close()
    assert len(read_log(str(tmp_path)).requests) == 2


def test_a_file_that_another_worker_is_still_making_is_followed_later(tmp_path):
    (tmp_path / "exposures-1.sqlite").write_bytes(b"")
    follower = SqliteFollower(tmp_path)
    assert follower.new() == []
    other = SqliteStore(tmp_path / "exposures-1.sqlite")
    other.write([request(0, "ann", "a", 5), click("e", 0, "b", 7)])
    assert follower.new() == [("ann", "b")]
    follower.close()
    other.close()
