"""Jobs run in several processes, each on one thread; no process outlives the one that started it."""

import atexit
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, Generic, TypeVar

import torch

from towpath.errors import TrainingError
from towpath.memory import current_limit, limit_memory

Shared = TypeVar("Shared")
Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Work(Generic[Result]):
    """In how many processes jobs run, where results are stored, and what is called with each result.

    With a folder, results that are stored there already are not computed again.
    """

    jobs: int = 1
    folder: Path | None = None
    on_result: Callable[[Result], None] = lambda result: None


@contextmanager
def workers(
    do: Callable[[Shared, Job], Result], shared: Shared, jobs: int
) -> Iterator[Callable[[Sequence[Job]], Iterator[Result]]]:
    """A function from jobs to their results, each as it finishes; `do` is a function of a module.

    With one process everything runs in this one. Others get `shared` once, when they start.
    """
    if jobs == 1:
        yield lambda batch: (do(shared, job) for job in batch)
        return
    # Spawned, not forked: torch's threads do not survive a fork.
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), _start_worker, (do, shared, _share_of_memory(jobs))
    ) as pool:
        others = set(active_children())
        try:
            yield lambda batch: _results(pool, batch)
        except BrokenProcessPool as error:
            raise TrainingError(
                "A worker process was killed, most likely because memory ran out; use a lower --jobs."
            ) from error
        except BaseException:
            # Not pool.shutdown(): it waits for the running fits.
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


def _results(pool: ProcessPoolExecutor, batch: Sequence[Job]) -> Iterator[Any]:  # what `do` returns
    with _ctrl_c_held_back():
        waiting = [pool.submit(_in_worker, job) for job in batch]
    for future in as_completed(waiting):
        yield future.result()


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """A block in which Ctrl-C waits, also for the processes started there, until they can leave it alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# What a worker process was started with: what it does, and what all jobs share.
_worker: tuple[Callable[[Any, Any], Any], Any] | None = None


def _share_of_memory(jobs: int) -> int | None:
    """What each worker may use of the limit of memory, if there is one; the process that waits counts too."""
    limit = current_limit()
    return None if limit is None else limit // (jobs + 1)


def _start_worker(do: Callable[[Shared, Job], Result], shared: Shared, memory: int | None) -> None:
    global _worker
    limit_memory(memory)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is ended by the one that started it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    Thread(target=_leave_with_parent, daemon=True).start()
    # While that thread is there, libraries take what it holds for leaks at the end, and say so at length.
    atexit.register(os._exit, 0)
    torch.set_num_threads(1)
    _worker = (do, shared)


def _leave_with_parent() -> None:
    """End this worker when the process that started it is gone, however it went; it would wait for ever."""
    parent = parent_process()
    assert parent is not None, "workers are started by a pool"
    parent.join()
    os._exit(1)


def _in_worker(job: Any) -> Any:  # whatever `do` takes and returns
    assert _worker is not None, "the pool starts every worker with _start_worker"
    do, shared = _worker
    return do(shared, job)
