"""The exposure log of one worker in one SQLite file."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain
from pathlib import Path

from towpath.serving.exposure_log.store import LogError, Store
from towpath.serving.exposure_log.tables import TABLES, Row, columns_of

# The column by which a row is known; assignments are never sent twice.
KEYS = {"requests": "request_id", "outcomes": "event_id"}
_TYPES = {"time": "INTEGER", "fallback": "INTEGER", "units": "REAL", "value": "REAL"}
# Deleted at once: more would keep answers waiting.
_PRUNED_AT_ONCE = 1_000
_PAGE = 4096
_ROWS_AT_ONCE = 64
_PATIENCE = 10.0  # seconds to wait for whoever else writes to the file, such as the deletion of a user


class SqliteStore(Store):
    """Write-ahead log, synced at every commit, so that what was committed survives a power cut."""

    def __init__(self, path: Path, most_megabytes: int = 0) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = connect(path)
            if most_megabytes:
                self._connection.execute(f"PRAGMA max_page_count = {most_megabytes * 2**20 // _PAGE}")
        except (sqlite3.Error, OSError) as error:
            raise LogError(f"The exposure log {path} cannot be opened: {error}.") from error

    def write(self, rows: Sequence[Row]) -> None:
        """One transaction for all rows.

        The usual batch is one statement, which is a transaction by itself. After each statement this thread
        has to wait for its turn among the threads of the server, so there should be few.
        """
        try:
            statements = [*_statements(rows)]
            if len(statements) > 1:
                statements = [("BEGIN IMMEDIATE", ()), *statements, ("COMMIT", ())]
            for statement, cells in statements:
                self._connection.execute(statement, cells)
        except sqlite3.Error as error:
            self._give_up()
            raise LogError(
                f"The exposure log {self.path} cannot be written ({error}), so nothing is served; free some "
                "space, raise the limit of the log or shorten its retention."
            ) from error

    def prune(self, before: int) -> int:
        """Delete from the oldest on; the file keeps its size and reuses the space."""
        deleted = 0
        for table in KEYS:
            oldest = f"SELECT number FROM {table} ORDER BY number LIMIT {_PRUNED_AT_ONCE}"
            query = f"DELETE FROM {table} WHERE number IN ({oldest}) AND time < ?"
            deleted += self._connection.execute(query, (before,)).rowcount
        return deleted

    def close(self) -> None:
        """Close the file; SQLite folds the write-ahead log into it."""
        self._connection.close()

    def _give_up(self) -> None:
        """Roll back; some errors have rolled back already."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def connect(path: Path) -> sqlite3.Connection:
    """A connection that commits when told to and syncs when it commits, with all tables there."""
    connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, cached_statements=256)
    try:
        _prepare(connection)
    except BaseException:  # such as a file that is no database
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Set how it writes, and create the tables that are not there."""
    connection.execute(f"PRAGMA page_size = {_PAGE}")
    connection.execute("PRAGMA journal_mode = WAL")
    # NORMAL would not sync at a commit: what has been answered could be lost.
    connection.execute("PRAGMA synchronous = FULL")
    for table in TABLES:
        connection.execute(create_table(table))
    connection.execute("CREATE INDEX IF NOT EXISTS outcomes_of_request ON outcomes (request_id)")


def create_table(table: str, number: str = "INTEGER PRIMARY KEY", types: dict[str, str] | None = None) -> str:
    """The statement that makes one of the tables where it is not there."""
    key, kinds = KEYS.get(table), types or _TYPES
    columns = [
        f"{c} {kinds.get(c, 'TEXT')}{' UNIQUE NOT NULL' if c == key else ''}" for c in columns_of(table)
    ]
    return f"CREATE TABLE IF NOT EXISTS {table} (number {number}, {', '.join(columns)})"


def delete_user(paths: Sequence[Path], user: str) -> int:
    """Delete all that the files of a log have of a user: how many requests that were.

    What a worker showed may have been clicked at another, so outcomes are looked for in all files. The
    content is overwritten, not just marked as free.
    """
    requests = [row for path in paths for row in _requests_of(path, user)]
    for path in paths:
        _delete_requests(path, requests)
    return len(requests)


def _requests_of(path: Path, user: str) -> list[tuple[str]]:
    """The requests of a user; looking through the whole file keeps no server waiting."""
    with _deleting_from(path) as connection:
        return connection.execute("SELECT request_id FROM requests WHERE user_id = ?", (user,)).fetchall()


def _delete_requests(path: Path, requests: Sequence[tuple[str]]) -> None:
    with _deleting_from(path) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("BEGIN IMMEDIATE")
        for table in KEYS:
            connection.executemany(f"DELETE FROM {table} WHERE request_id = ?", requests)
        [(deletions,)] = connection.execute("PRAGMA user_version")
        connection.execute(f"PRAGMA user_version = {deletions + 1}")  # servers then read the log anew
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _deleting_from(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for the deletion of a user; its errors say so."""
    try:
        with closing(connect(path)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise LogError(f"The user cannot be deleted from {path} ({error}); try again.") from error


def _statements(rows: Sequence[Row]) -> Iterator[tuple[str, Sequence[object]]]:
    """The statements that insert these rows, table by table, and their cells."""
    for table, kind in TABLES.items():
        mine = [row for row in rows if type(row) is kind]
        for start in range(0, len(mine), _ROWS_AT_ONCE):
            some = mine[start : start + _ROWS_AT_ONCE]
            yield insert_statement(table, len(some)), [*chain.from_iterable(some)]


@cache
def insert_statement(table: str, rows: int) -> str:
    """The statement that inserts so many rows."""
    columns = columns_of(table)
    places = f"({', '.join('?' for _ in columns)})"
    every = ", ".join([places] * rows)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {every} ON CONFLICT DO NOTHING"
