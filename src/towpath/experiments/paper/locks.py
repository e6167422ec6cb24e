"""Work that one process at a time may do: a lock that the system lets go of when its holder ends, however."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = ".lock"  # of a folder whose files are written together


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Whether the lock of this name is ours within the block; without `wait` it may be another's.

    A process that is killed leaves an empty file behind, and no lock: whoever comes next gets it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
