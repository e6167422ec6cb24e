"""One DuckDB for many readings: to open and close one takes longer than to read sixty rows.

Every reading gets an empty catalogue of its own in a database that stays open, and drops it afterwards. A
database that an input has broken is replaced. The processes that the fuzzer forks open their own.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest import mock

import duckdb

from towpath.data import engine

_connect = duckdb.connect
_numbers = count()


class _Lender:
    """Keeps the database of this process."""

    def __init__(self) -> None:
        # Those of other processes are never closed here: their threads did not survive the fork.
        self._databases: list[tuple[int, duckdb.DuckDBPyConnection]] = []
        self._broken = False

    def connect(self, place: str = ":memory:") -> "_Lent":
        if self._broken or not self._databases or self._databases[-1][0] != os.getpid():
            self._databases.append((os.getpid(), _connect(place)))
            self._broken = False
        return _Lent(self, self._databases[-1][1].cursor())

    def drop(self) -> None:
        """Open another one next time."""
        self._broken = True


class _Lent:
    """A connection whose catalogue is gone when it is closed."""

    def __init__(self, lender: _Lender, connection: duckdb.DuckDBPyConnection) -> None:
        self._lender, self._connection, self._name = lender, connection, f"lent_{next(_numbers)}"
        connection.execute(f"ATTACH ':memory:' AS {self._name}")
        connection.execute(f"USE {self._name}")

    def __getattr__(self, name: str) -> Any:  # everything else is the connection's
        return getattr(self._connection, name)

    def close(self) -> None:
        try:
            self._connection.execute("RESET disabled_optimizers")
            self._connection.execute("USE memory")
            self._connection.execute(f"DETACH {self._name}")
        except duckdb.Error:
            self._lender.drop()
        self._connection.close()


@contextmanager
def lent_engine() -> Iterator[None]:
    """A block in which readings borrow their DuckDB."""
    with mock.patch.object(engine.duckdb, "connect", _Lender().connect):
        yield
