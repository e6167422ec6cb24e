"""The exposure log in a PostgreSQL database, for servers on several machines (extra `postgres`)."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

from towpath.errors import ConfigError, DataError
from towpath.serving.exposure_log.follow import Follower, Pair, Showing
from towpath.serving.exposure_log.sqlite import KEYS, create_table
from towpath.serving.exposure_log.store import LogError, Store
from towpath.serving.exposure_log.tables import TABLES, LogTables, Row, columns_of, table_of

PREFIX = "towpath_"
_TYPES = {"time": "BIGINT", "fallback": "BIGINT", "units": "DOUBLE PRECISION", "value": "DOUBLE PRECISION"}
_SECONDS = 5.0  # to connect, and for one statement
_PRUNED_AT_ONCE = 1_000
# Two servers that start at once must not make the tables at once; any number that others hardly use.
_LOCK = 7_071_912
_LOOK_BACK = 200
_DELETIONS = f"{PREFIX}deletions"  # a sequence that counts deletions of users


class PostgresqlStore(Store):
    """One connection with an event loop of its own, so that the writer's thread can wait for it.

    A lost connection is opened again and the rows sent once more; those that had arrived are left out by
    their keys.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._connection: Any = None  # asyncpg has no types
        self._inserts = {kind: _insert(table) for table, kind in TABLES.items()}
        try:
            self._run(self._connected())
        except BaseException:
            self._loop.close()
            raise

    def write(self, rows: Sequence[Row]) -> None:
        """One transaction for all rows, once more if the connection was lost."""
        self._run(self._again(lambda connection: self._insert_all(connection, rows)))

    def prune(self, before: int) -> int:
        """Delete the oldest rows of both tables."""
        return int(self._run(self._again(lambda connection: _prune(connection, before))))

    def outcomes_after(self, number: int) -> list[tuple[int, str, str]]:
        """Number, user and item of all outcomes of known users with a higher number."""
        query = (
            f"SELECT o.number, r.user_id, o.item_id FROM {PREFIX}outcomes AS o JOIN {PREFIX}requests AS r "
            "ON o.request_id = r.request_id WHERE o.number > $1 AND r.user_id IS NOT NULL ORDER BY o.number"
        )
        rows = self._run(self._again(lambda connection: connection.fetch(query, number)))
        return [tuple(row) for row in rows]

    def shown_after(self, number: int) -> list[tuple[int, str, int, str]]:
        """Number, user, time and items of all answers to known users with a higher number."""
        query = (
            f"SELECT number, user_id, time, items FROM {PREFIX}requests "
            "WHERE number > $1 AND user_id IS NOT NULL ORDER BY number"
        )
        rows = self._run(self._again(lambda connection: connection.fetch(query, number)))
        return [tuple(row) for row in rows]

    def deletions(self) -> int:
        """How often users have been deleted."""
        query = f"SELECT last_value + is_called::int FROM {_DELETIONS}"  # 0 before the first
        return int(self._run(self._again(lambda connection: connection.fetchval(query))))

    def close(self) -> None:
        """Close the connection and the loop."""
        if self._connection is not None:
            with suppress(Exception):
                self._loop.run_until_complete(self._connection.close(timeout=_SECONDS))
        self._loop.close()

    def _run(self, work: Any) -> Any:  # a coroutine and its result
        try:
            return self._loop.run_until_complete(work)
        except (_asyncpg().PostgresError, *_lost()) as error:
            raise LogError(
                f"The exposure log in PostgreSQL cannot be reached or written ({_reason(error)}), so nothing "
                "is served; see to the database."
            ) from error

    async def _connected(self) -> Any:
        if self._connection is None or self._connection.is_closed():
            self._connection = await _connect(self._address)
            await _make_tables(self._connection)
        return self._connection

    async def _again(self, work: Any) -> Any:
        """The work, with a new connection if the old one is gone."""
        try:
            return await work(await self._connected())
        except _lost():
            if self._connection is not None:
                self._connection.terminate()
            self._connection = None
            return await work(await self._connected())

    async def _insert_all(self, connection: Any, rows: Sequence[Row]) -> None:
        async with connection.transaction():
            for kind, insert in self._inserts.items():
                cells = [row for row in rows if type(row) is kind]
                if cells:
                    columns = [list(column) for column in zip(*cells, strict=True)]
                    await connection.execute(insert, *columns, timeout=_SECONDS)


class PostgresqlFollower(Follower):
    """Follows both tables; looks back a little, since numbers may become visible out of order."""

    def __init__(self, address: str) -> None:
        self._store = PostgresqlStore(address)
        self._last = 0  # outcome
        self._last_shown: set[int] = set()  # the newest answers

    def new(self) -> list[Pair]:
        """The outcomes since the last call, and a few of those before it."""
        found = self._store.outcomes_after(self._last - _LOOK_BACK)
        self._last = max([self._last, *(number for number, _, _ in found)])
        return [(user, item) for _, user, item in found]

    def shown(self) -> list[Showing]:
        """The answers since the last call that name a user, and those before it that were not there yet."""
        found = self._store.shown_after(max(self._last_shown, default=0) - _LOOK_BACK)
        new = [row for row in found if row[0] not in self._last_shown]
        self._last_shown = {row[0] for row in found if row[0] >= found[-1][0] - _LOOK_BACK}
        return [(user, time, items) for _, user, time, items in new]

    def deletions(self) -> int:
        """What the sequence of deletions has counted."""
        return self._store.deletions()

    def restart(self) -> None:
        """From the first row of each table."""
        self._last, self._last_shown = 0, set()

    def close(self) -> None:
        """Close the connection."""
        self._store.close()


def read_postgresql(address: str) -> LogTables:
    """The whole log of a database."""
    return LogTables(**_fetched(address, _read_tables))


def delete_user_in_postgresql(address: str, user: str) -> int:
    """Delete all that a database has of a user: how many requests that were."""
    return int(_fetched(address, lambda connection: _delete_user(connection, user)))


def _fetched(address: str, work: Any) -> Any:  # a coroutine function and what it gives
    asyncpg = _asyncpg()

    async def fetch() -> Any:
        connection = await _connect(address)
        try:
            await _make_tables(connection)
            return await work(connection)
        finally:
            await connection.close()

    try:
        return asyncio.run(fetch())
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise DataError(
            f"The exposure log in PostgreSQL cannot be read ({_reason(error)}); check the address and "
            "whether the database runs."
        ) from error


async def _read_tables(connection: Any) -> dict[str, Any]:
    found = {}
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        for table in TABLES:
            query = f"SELECT {', '.join(columns_of(table))} FROM {PREFIX}{table} ORDER BY number"
            found[table] = table_of(table, [tuple(row) for row in await connection.fetch(query)])
    return found


async def _delete_user(connection: Any, user: str) -> int:
    mine = f"SELECT request_id FROM {PREFIX}requests WHERE user_id = $1"
    async with connection.transaction():
        await connection.execute(f"DELETE FROM {PREFIX}outcomes WHERE request_id IN ({mine})", user)
        done = await connection.execute(f"DELETE FROM {PREFIX}requests WHERE user_id = $1", user)
    await connection.execute(f"SELECT nextval('{_DELETIONS}')")  # servers then read the log anew
    return int(done.split()[-1])


async def _prune(connection: Any, before: int) -> int:
    deleted = 0
    for table in KEYS:
        oldest = f"SELECT number FROM {PREFIX}{table} ORDER BY number LIMIT {_PRUNED_AT_ONCE}"
        query = f"DELETE FROM {PREFIX}{table} WHERE number IN ({oldest}) AND time < $1"
        deleted += int((await connection.execute(query, before)).split()[-1])
    return deleted


async def _connect(address: str) -> Any:
    asyncpg = _asyncpg()
    try:
        return await asyncpg.connect(address, timeout=_SECONDS, command_timeout=_SECONDS)
    except ValueError as error:  # an address that asyncpg cannot parse
        raise ConfigError(
            f"The address of the log should be postgresql://USER:PASSWORD@HOST/DATABASE ({error})."
        ) from error


async def _make_tables(connection: Any) -> None:
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        for table in TABLES:
            statement = create_table(table, "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", _TYPES)
            await connection.execute(statement.replace(f"EXISTS {table}", f"EXISTS {PREFIX}{table}"))
        await connection.execute(
            f"CREATE INDEX IF NOT EXISTS {PREFIX}outcomes_of_request ON {PREFIX}outcomes (request_id)"
        )
        await connection.execute(
            f"CREATE INDEX IF NOT EXISTS {PREFIX}requests_of_user ON {PREFIX}requests (user_id)"
        )
        await connection.execute(f"CREATE SEQUENCE IF NOT EXISTS {_DELETIONS} MINVALUE 0")


def _insert(table: str) -> str:
    columns = columns_of(table)
    arrays = ", ".join(f"${n}::{_TYPES.get(c, 'text')}[]" for n, c in enumerate(columns, 1))
    return (
        f"INSERT INTO {PREFIX}{table} ({', '.join(columns)}) SELECT * FROM unnest({arrays}) "
        "ON CONFLICT DO NOTHING"
    )


def _lost() -> tuple[type[Exception], ...]:
    """The errors after which a connection is of no more use.

    InternalClientError: the connection broke within an answer, and still waits for the rest of it.
    """
    asyncpg = _asyncpg()
    names = (
        "PostgresConnectionError InterfaceError InternalClientError AdminShutdownError CrashShutdownError "
        "CannotConnectNowError"
    )
    return OSError, TimeoutError, *(getattr(asyncpg, name) for name in names.split())


def _asyncpg() -> ModuleType:
    try:
        import asyncpg
    except ImportError as error:
        raise ConfigError(
            "A log in PostgreSQL needs asyncpg, which is not installed: pip install 'towpath[postgres]'."
        ) from error
    return asyncpg


def _reason(error: Exception) -> str:
    """What went wrong, without the address, which may hold a password."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no answer'}"
