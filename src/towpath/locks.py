"""File locks between processes; the system releases a lock when its process ends, also after a kill."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from towpath.errors import ConfigError

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


@contextmanager
def only_writer(target: Path, name: str = LOCK) -> Iterator[None]:
    """A block in which no other process writes to `target`; raises if another one is writing there now.

    The lock lies next to the target and is gone afterwards, as is a folder that was made for nothing else.
    """
    target = target.absolute()
    if not target.name:
        raise ConfigError(f"{target} cannot be written to; choose another --out.")
    made = _missing_parents(target)
    path = target.with_name(f".{target.name}{name}")
    try:
        with locked(path, wait=False) as mine:
            if not mine:
                raise ConfigError(
                    f"Another towpath is writing to {target} now; wait until it has finished, or choose "
                    "another --out."
                )
            try:
                yield
            finally:
                path.unlink(missing_ok=True)  # while it is still held: whoever comes next makes a new one
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()  # which it can be only if nothing came to lie in it


def _missing_parents(target: Path) -> list[Path]:
    """The folders around a target that are not there yet, the innermost first."""
    return [folder for folder in target.parents if not folder.exists()]
