"""The contract of every database that keeps an exposure log, and what can go wrong with it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from towpath.errors import TowpathError
from towpath.serving.exposure_log.tables import Row

POSTGRESQL = ("postgresql://", "postgres://")


class LogError(TowpathError):
    """The exposure log cannot be written; what was to be logged is not, and must not be served."""


@dataclass(frozen=True)
class LogSettings:
    """Where the log is and how large it may grow."""

    place: str  # a folder, or the address of a PostgreSQL database
    most_megabytes: int = 0  # of one worker's file; 0: as the disk allows. PostgreSQL has limits of its own.

    @property
    def in_postgresql(self) -> bool:
        """Whether the log is kept by a database server."""
        return self.place.startswith(POSTGRESQL)


class Store(ABC):
    """One writer's connection to the log; used by one thread only."""

    @abstractmethod
    def write(self, rows: Sequence[Row]) -> None:
        """All rows, durable when this returns; none of them after an error, which is a LogError.

        A row whose request_id or event_id is there already is left out.
        """

    @abstractmethod
    def prune(self, before: int) -> int:
        """How many of the oldest rows older than this time were deleted; to be repeated until none are."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""


def open_store(settings: LogSettings, worker: int = 0) -> Store:
    """The store of one worker; tables are made where there are none."""
    if settings.in_postgresql:
        from towpath.serving.exposure_log.postgresql import PostgresqlStore

        return PostgresqlStore(settings.place)
    from towpath.serving.exposure_log.sqlite import SqliteStore

    return SqliteStore(Path(settings.place) / f"exposures-{worker}.sqlite", settings.most_megabytes)
