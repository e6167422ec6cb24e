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

Batch = tuple[list[Row], "asyncio.Future[None]"]


class LogWriter:
    """One thread that owns the store; rows go in by `write`, which gives a future.

    While one batch is being written, rows for the next one gather. `keep_from` says from which time on rows
    are kept; older ones are deleted a few at a time when there is nothing else to do.
    """

    def __init__(self, open_store: Callable[[], Store], keep_from: Callable[[], int] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._keep_from = keep_from
        self._opened = self._loop.create_future()
        self._next: Batch = ([], self._loop.create_future())
        self._under_way: asyncio.Future[None] | None = None
        self._thread = threading.Thread(
            target=self._run, args=(open_store,), name="exposure-log", daemon=True
        )
        self._thread.start()

    async def ready(self) -> None:
        """Nothing, once the store is open; the LogError if it cannot be opened."""
        await asyncio.shield(self._opened)

    def write(self, rows: Sequence[Row]) -> "asyncio.Future[None]":
        """A future that is done when all rows are durable, and fails with a LogError if they are not.

        Rows of one batch share it; a refused batch is refused for all of them.
        """
        gathered, done = self._next
        if len(gathered) >= _MOST_WAITING:
            raise LogError(f"{len(gathered):,} answers wait for the exposure log already; try again later.")
        gathered.extend(rows)
        if self._under_way is None:
            # Not at once: what else arrives in this round of the loop belongs to the same batch.
            self._under_way = done
            self._loop.call_soon(self._hand_over)
        return done

    @property
    def waiting(self) -> int:
        """How many rows wait for the next batch."""
        return len(self._next[0])

    async def close(self) -> None:
        """Write what waits, then close the store."""
        while self._under_way is not None and self._thread.is_alive():
            await asyncio.wait([self._under_way])
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _hand_over(self) -> None:
        batch, self._next = self._next, ([], self._loop.create_future())
        self._under_way = batch[1]
        self._queue.put(batch)

    def _settle(self, done: "asyncio.Future[None]", error: Exception | None) -> None:
        """Tell everyone of a batch, and hand over the next one."""
        self._under_way = None
        _finish(done, error)
        if self._next[0]:
            self._hand_over()

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
        """Write a batch, or delete what is old if there is none; false when it is time to go."""
        try:
            batch = self._queue.get(timeout=_HEARTBEAT)
        except queue.Empty:
            self._prune(store)
            return True
        if batch is None:
            return False
        rows, done = batch
        self._later(self._settle, done, _written(store, rows))
        return True

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
