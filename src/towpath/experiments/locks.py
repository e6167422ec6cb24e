"""File locks between processes; the system releases a lock when its process ends, also after a kill."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = ".lock"  # of a folder whose files are written together


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Whether this process holds the lock of this name within the block.

    Without `wait` the answer is False if another process holds it. A killed process leaves an empty file
    behind, and no lock.
    """
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
