import asyncpg
import pytest

from postgresql import kill_server, postgresql_server, restart_server
from small_logs import assigned, click, order, request
from towpath.errors import ConfigError, DataError
from towpath.serving.exposure_log.postgresql import (
    PostgresqlFollower,
    PostgresqlStore,
    delete_user_in_postgresql,
    read_postgresql,
)
from towpath.serving.exposure_log.read import read_log
from towpath.serving.exposure_log.store import LogError, LogSettings, open_store


@pytest.fixture(scope="module")
def server():
    with postgresql_server() as server:
        yield server


def test_one_database_keeps_the_log_of_all_workers(server):
    address = server.get_uri()
    rows = [request(0, "ann", "a", 5), request(1, None, "b", 6)]
    stores = [open_store(LogSettings(address), worker) for worker in (0, 1)]
    stores[0].write([*rows, assigned(1, "a", "b")])
    stores[1].write([rows[0], click("e", 0, "a", 7), order("f", 0, 8, value=2.5)])
    stores[1].write([click("e", 0, "b", 9)])
    log = read_log(address)
    assert log.requests.to_pylist() == [row._asdict() for row in rows]
    assert log.outcomes["event_id"].to_pylist() == ["e", "f"]
    assert log.outcomes["value"].to_pylist() == [0.0, 2.5]
    assert len(log.assignments) == 1
    follower = PostgresqlFollower(address)
    assert follower.deletions() == 0
    assert follower.new() == [("ann", "a"), ("ann", "a")]
    assert [follower.shown(), follower.shown()] == [[("ann", 5, rows[0].items)], []]
    assert delete_user_in_postgresql(address, "ann") == 1
    assert follower.deletions() == 1
    follower.restart()
    assert follower.new() == follower.shown() == []
    follower.close()
    assert len(read_log(address).outcomes) == 0
    assert stores[0].prune(before=100) == 1
    for store in stores:
        store.close()


def write_until_refused(store, number):
    """The number of the first request that was refused, from this number on."""
    for n in range(number, number + 10_000):
        try:
            store.write([request(n, "ann", "a", 6)])
        except LogError:
            return n
    pytest.fail("never refused")


def test_a_database_that_was_killed_and_comes_back_has_lost_nothing(server):
    store = PostgresqlStore(server.get_uri())
    store.write([request(100, "ann", "a", 5)])
    kill_server(server)
    acknowledged = write_until_refused(store, 101)
    with pytest.raises(LogError, match="nothing is served"):
        store.write([request(acknowledged, "ann", "a", 6)])
    restart_server(server)
    store.write([request(1_000, "ann", "a", 7)])
    logged = read_postgresql(server.get_uri()).requests["request_id"].to_pylist()
    assert {f"r{number}" for number in range(100, acknowledged)} <= set(logged)
    assert "r1000" in logged
    store.close()


class Halfway:
    """A connection that broke within an answer: it is not closed, and takes nothing more."""

    def is_closed(self):
        return False

    async def fetch(self, *_):
        raise asyncpg.InternalClientError("another operation (2) is in progress")

    def terminate(self):
        pass


def test_a_connection_that_broke_within_an_answer_is_opened_again(server):
    store = PostgresqlStore(server.get_uri())
    store.write([request(2_000, "eve", "a", 5), click("h", 2_000, "a", 6)])
    store._connection, real = Halfway(), store._connection
    real.terminate()
    assert [row[1:] for row in store.outcomes_after(0)] == [("eve", "a")]
    store.close()


def test_addresses_that_lead_nowhere_are_said_without_their_password():
    with pytest.raises(LogError, match="cannot be reached") as said:
        PostgresqlStore("postgresql://me:secret@127.0.0.1:1/none")
    assert "secret" not in str(said.value)
    with pytest.raises(DataError, match="cannot be read"):
        read_postgresql("postgresql://me:secret@127.0.0.1:1/none")
    with pytest.raises(ConfigError, match="should be postgresql://"):
        read_postgresql("postgresql://me:secret@127.0.0.1:port/none")
