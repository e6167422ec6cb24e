"""Group commit: whoever waits for a row to be durable shares one sync with everybody else who waits."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from towpath.serving.exposure_log.store import LogError, Store
from towpath.serving.exposure_log.tables import Row

# More rows than this in one transaction would keep the first of them waiting.
_MOST_AT_ONCE = 512
# What may wait; beyond it the disk is too slow for the traffic and requests are refused.
_MOST_WAITING = 10_000
_HEARTBEAT = 1.0  # seconds between looks for rows to delete when nothing is written

Waiting = tuple[Sequence[Row], "asyncio.Future[None]"]


class LogWriter:
    """One thread that owns the store; rows go in by `write`, which returns when they are durable.

    `keep_from` says from which time on rows are kept; older ones are deleted a few at a time.
    """

    def __init__(self, open_store: Callable[[], Store], keep_from: Callable[[], int] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: queue.Queue[Waiting | None] = queue.Queue(_MOST_WAITING)
        self._keep_from = keep_from
        self._opened = self._loop.create_future()
        self._thread = threading.Thread(
            target=self._run, args=(open_store,), name="exposure-log", daemon=True
        )
        self._thread.start()

    async def ready(self) -> None:
        """Nothing, once the store is open; the LogError if it cannot be opened."""
        await asyncio.shield(self._opened)

    def write(self, rows: Sequence[Row]) -> "asyncio.Future[None]":
        """A future that is done when all rows are durable, and fails with a LogError if they are not."""
        done: asyncio.Future[None] = self._loop.create_future()
        try:
            self._queue.put_nowait((rows, done))
        except queue.Full:
            done.set_exception(
                LogError(f"{_MOST_WAITING:,} answers wait for the exposure log already; try again later.")
            )
        return done

    @property
    def waiting(self) -> int:
        """How many answers wait for the log."""
        return self._queue.qsize()

    async def close(self) -> None:
        """Write what waits, then close the store."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self, open_store: Callable[[], Store]) -> None:
        try:
            store = open_store()
        except Exception as error:
            self._later(_settle, [self._opened], error)
            return
        self._later(_settle, [self._opened], None)
        try:
            while self._step(store):
                pass
        finally:
            store.close()

    def _step(self, store: Store) -> bool:
        """Write what waits, or delete what is old if nothing does; false when it is time to go."""
        try:
            first = self._queue.get(timeout=_HEARTBEAT)
        except queue.Empty:
            self._prune(store)
            return True
        batch, going_on = self._drain(first)
        if batch:
            error = _written(store, [row for rows, _ in batch for row in rows])
            self._later(_settle, [done for _, done in batch], error)
        return going_on

    def _drain(self, first: Waiting | None) -> tuple[list[Waiting], bool]:
        """All that waits, up to a limit, and whether there is more to come."""
        batch: list[Waiting] = []
        one = first
        while one is not None:
            batch.append(one)
            if len(batch) == _MOST_AT_ONCE:
                return batch, True
            try:
                one = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _prune(self, store: Store) -> None:
        if self._keep_from is None:
            return
        before = self._keep_from()
        with suppress(Exception):  # tried again at the next heartbeat; writing has its own errors
            while self._queue.empty() and store.prune(before):
                pass

    def _later(self, what: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(what, *arguments)


def _written(store: Store, rows: Sequence[Row]) -> Exception | None:
    """What went wrong, or None."""
    try:
        store.write(rows)
    except LogError as error:
        return error
    except Exception as error:  # whatever it was, nobody may be told that the rows are durable
        return LogError(f"The exposure log cannot be written ({type(error).__name__}: {error}).")
    return None


def _settle(waiting: Sequence["asyncio.Future[None]"], error: Exception | None) -> None:
    for one in waiting:
        if one.done():  # its client went away
            continue
        if error is None:
            one.set_result(None)
        else:
            one.set_exception(error)
