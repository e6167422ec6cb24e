"""What users were shown and have done, as it comes into the log from any worker."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from towpath.serving.exposure_log.read import FILES
from towpath.serving.exposure_log.store import LogError, LogSettings

Pair = tuple[str, str]  # user, item
Showing = tuple[str, int, str]  # user, time, the items as JSON


class Follower(ABC):
    """Reads answers and outcomes in the order in which they came; used by one thread only."""

    @abstractmethod
    def new(self) -> list[Pair]:
        """Who has clicked or ordered what since the last call; some pairs may come twice."""

    @abstractmethod
    def shown(self) -> list[Showing]:
        """Who was shown what since the last call, each list once."""

    @abstractmethod
    def deletions(self) -> int:
        """How often users have been deleted from the log; after another one all is to be read anew."""

    @abstractmethod
    def restart(self) -> None:
        """Let the next calls of `new` and `shown` give all that is there."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""


def open_follower(settings: LogSettings) -> Follower:
    """The follower of a log; its first call gives all that is there."""
    if settings.in_postgresql:
        from towpath.serving.exposure_log.postgresql import PostgresqlFollower

        return PostgresqlFollower(settings.place)
    return SqliteFollower(Path(settings.place))


class SqliteFollower(Follower):
    """Follows the files of all workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, sqlite3.Connection] = {}
        self._last: dict[Path, int] = {}  # outcome of each file
        self._last_shown: dict[Path, int] = {}  # answer

    def new(self) -> list[Pair]:
        """The request of an outcome may be in another worker's file, so it is looked for in all."""
        with self._reading():
            return self._found()

    def shown(self) -> list[Showing]:
        """The answers of each file that name a user."""
        found: list[Showing] = []
        query = (
            "SELECT number, user_id, time, items FROM requests WHERE number > ? AND user_id IS NOT NULL "
            "ORDER BY number"
        )
        with self._reading():
            for path, file in self._files.items():
                for number, user, time, items in file.execute(query, (self._last_shown[path],)).fetchall():
                    self._last_shown[path] = number
                    found.append((user, time, items))
        return found

    def deletions(self) -> int:
        """The sum over all files; a new file has none."""
        with self._reading():
            versions = (file.execute("PRAGMA user_version").fetchone() for file in self._files.values())
            return sum(int(version) for (version,) in versions)

    def restart(self) -> None:
        """From the first row of each file."""
        self._last, self._last_shown = dict.fromkeys(self._last, 0), dict.fromkeys(self._last, 0)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """All files that are there are open; what is wrong with them is one sentence."""
        try:
            for path in sorted(self._folder.glob(FILES)):
                if path not in self._files and (file := _opened(path)) is not None:
                    self._files[path], self._last[path], self._last_shown[path] = file, 0, 0
            yield
        except sqlite3.Error as error:
            raise LogError(
                f"The exposure log {self._folder} cannot be read ({error}); restore it from a copy, or "
                "choose another --log."
            ) from error

    def _found(self) -> list[Pair]:
        found = []
        for path, file in self._files.items():
            query = "SELECT number, request_id, item_id FROM outcomes WHERE number > ? ORDER BY number"
            for number, request, item in file.execute(query, (self._last[path],)).fetchall():
                self._last[path] = number
                user = self._user_of(request)
                if user is not None:
                    found.append((user, item))
        return found

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()

    def _user_of(self, request: str) -> str | None:
        for file in self._files.values():
            row = file.execute("SELECT user_id FROM requests WHERE request_id = ?", (request,)).fetchone()
            if row is not None:
                return None if row[0] is None else str(row[0])
        return None


def _opened(path: Path) -> sqlite3.Connection | None:
    """The file, for reading; None while the worker that it belongs to is still making its tables."""
    if not path.is_file():
        raise LogError(f"{path} should be a file of an exposure log, but it is something else; remove it.")
    file = None
    try:
        file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)
        file.execute("SELECT 1 FROM outcomes, requests LIMIT 1").fetchall()
        return file
    except sqlite3.Error as error:
        if file is not None:
            file.close()
        if not isinstance(error, sqlite3.OperationalError):  # it is no database
            raise
        return None
