"""Group commit: whoever waits for a row to be durable shares one sync with everybody else who waits."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from towpath.serving.exposure_log.store import LogError, Store
from towpath.serving.exposure_log.tables import Row

# What may wait; beyond it the disk is too slow for the traffic and requests are refused.
_MOST_WAITING = 10_000
_HEARTBEAT = 1.0  # seconds between looks for rows to delete when nothing is written

# The rows of one turn of the event loop, and what is done when they are durable.
Turn = tuple[list[Row], "asyncio.Future[None]"]


class LogWriter:
    """One thread that owns the store; rows go in by `write`, which gives a future.

    All rows of one turn of the event loop are handed over together, and while one batch is being written the
    turns for the next one gather. `keep_from` says from which time on rows are kept; older ones are deleted a
    few at a time when there is nothing else to do.
    """

    def __init__(self, open_store: Callable[[], Store], keep_from: Callable[[], int] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[Turn | None] = queue.SimpleQueue()
        self._turn: Turn | None = None
        self.waiting = 0  # rows that are not durable yet
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
        """A future that is done when all rows are durable, and fails with a LogError if they are not.

        Rows that wait at the same time are one batch; a refused batch is refused for all of them.
        """
        if self.waiting >= _MOST_WAITING:
            raise LogError(f"{self.waiting:,} rows wait for the exposure log already; try again later.")
        if self._turn is None:
            self._turn = [], self._loop.create_future()
            self._loop.call_soon(self._hand_over)
        gathered, done = self._turn
        gathered.extend(rows)
        self.waiting += len(rows)
        return done

    async def close(self) -> None:
        """Write what waits, then close the store."""
        self._hand_over()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _hand_over(self) -> None:
        if self._turn is not None:
            self._queue.put(self._turn)
            self._turn = None

    def _settle(self, batch: Sequence[Turn], error: Exception | None) -> None:
        for rows, done in batch:
            self.waiting -= len(rows)
            _finish(done, error)

    def _run(self, open_store: Callable[[], Store]) -> None:
        try:
            store = open_store()
        except Exception as error:
            self._later(_finish, self._opened, error)
            return
        self._later(_finish, self._opened, None)
        try:
            while self._step(store):
                pass
        finally:
            store.close()

    def _step(self, store: Store) -> bool:
        """Write all that waits, or delete what is old if nothing does; false when it is time to go."""
        try:
            waiting = [self._queue.get(timeout=_HEARTBEAT)]
        except queue.Empty:
            self._prune(store)
            return True
        while not self._queue.empty():
            waiting.append(self._queue.get())
        batch = [one for one in waiting if one is not None]
        if batch:
            error = _written(store, [row for rows, _ in batch for row in rows])
            self._later(self._settle, batch, error)
        return len(batch) == len(waiting)

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


def _finish(waiting: "asyncio.Future[None]", error: Exception | None) -> None:
    if waiting.done():
        return
    if error is None:
        waiting.set_result(None)
    else:
        waiting.set_exception(error)
        waiting.exception()  # whoever waited may have gone; that is no reason to complain
