"""A limit on memory: how much is left of it, and one sentence where that is not enough.

Work whose size can be chosen (DuckDB's buffers, blocks of scores) asks for its share of what is left. Work
whose size cannot (tables of a model, Adam's moments) is refused before it begins. The limit holds for the
whole process: what its libraries take counts too.
"""

import ctypes
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from towpath.errors import ConfigError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([KMG]?I?)B?\s*", re.IGNORECASE)
_STATM = Path("/proc/self/statm")
# glibc: from this size on, freed memory goes back to the system at once (M_MMAP_THRESHOLD is option -3).
_MMAP_THRESHOLD, _RETURNED_FROM = -3, 4 * 2**20


@dataclass(frozen=True)
class _Limit:
    bytes: int
    peak_before: int  # the peak of the process before there was a limit


_current: ContextVar[_Limit | None] = ContextVar("towpath_memory_limit", default=None)


@contextmanager
def memory_limit(size: int | str | None) -> Iterator[None]:
    """A block in which reading, fitting, evaluating and recommending keep to this much memory.

    A number of bytes, or a text such as "2GB" (10^9 bytes) or "512MiB" (2^20); None: no limit. What cannot
    be done within it is a ConfigError.
    """
    token = _current.set(None if size is None else _new_limit(size))
    try:
        yield
    finally:
        _current.reset(token)


def limit_memory(size: int | str | None) -> None:
    """The same from now on, for a program that sets it once."""
    _current.set(None if size is None else _new_limit(size))


def current_limit() -> int | None:
    """The limit in bytes, if there is one."""
    limit = _current.get()
    return None if limit is None else limit.bytes


def parse_size(size: int | str) -> int:
    """A size in bytes.

    >>> parse_size("2GB"), parse_size("1.5 GiB"), parse_size("300m"), parse_size(7)
    (2000000000, 1610612736, 300000000, 7)
    """
    found = _SIZE.fullmatch(str(size))
    bytes_ = round(float(found[1]) * _UNITS[found[2].upper()]) if found and found[2].upper() in _UNITS else 0
    if bytes_ <= 0:
        raise ConfigError(f"A size of memory is a number with a unit, such as 2GB, and {size!r} was given.")
    return bytes_


def size_text(bytes_: int) -> str:
    """A size for people.

    >>> size_text(1_234_567_890), size_text(45_600_000)
    ('1.23 GB', '46 MB')
    """
    return f"{bytes_ / 1e9:,.2f} GB" if bytes_ >= 10**9 else f"{bytes_ / 1e6:.0f} MB"


def share_of_room(wanted: int, least: int, what: str, *, share: float = 0.5) -> int:
    """How many bytes this work may use: `wanted`, or a share of what is left where that is less.

    Raises if the share is below `least`, without which it cannot be done.
    """
    limit = _current.get()
    if limit is None:
        return wanted
    allowed = round(share * max(0, limit.bytes - resident()))
    if allowed < least:
        needed = resident() + round(least / share)
        raise _too_little(limit, f"{what} needs about {size_text(needed)} in all")
    return min(wanted, allowed)


def has_room(size: int, *, share: float = 0.4) -> bool:
    """Whether so many bytes are at most a share of what is left of the limit, or else of the machine."""
    limit = _current.get()
    return size <= share * (available() if limit is None else limit.bytes - resident())


def refuse_beyond(needed: int, what: str, advice: str) -> None:
    """Nothing, unless there is a limit and less than `needed` bytes are left of it."""
    limit = _current.get()
    if limit is not None and needed > limit.bytes - resident():
        more = f"{what} needs about {size_text(needed)} on top of {size_text(resident())} in use"
        raise _too_little(limit, more, advice)


def refuse_exceeded(what: str, advice: str) -> None:
    """Nothing, unless the process has held more than the limit since that was set."""
    limit = _current.get()
    if limit is not None and peak() > max(limit.bytes, limit.peak_before):
        raise _too_little(limit, f"{what} took {size_text(peak())}", advice)


def resident() -> int:
    """The bytes that the process holds now; where the system does not say, the most that it has held."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return peak()


def available() -> int:
    """The bytes that the machine has left; where the system does not say, all that it has."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def peak() -> int:
    """The most bytes that the process has held."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _too_little(limit: _Limit, what: str, advice: str = "") -> ConfigError:
    advised = f"{advice}, or give more" if advice else "give more"
    return ConfigError(f"{what}, and the limit of memory is {size_text(limit.bytes)}; {advised}.")


def _new_limit(size: int | str) -> _Limit:
    bytes_ = parse_size(size)
    _return_freed_memory()
    return _Limit(bytes_, peak())


def _return_freed_memory() -> None:
    """Have the C library return large pieces at once, not keep them for later; elsewhere nothing happens."""
    try:
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _RETURNED_FROM)
    except (OSError, AttributeError):  # no glibc
        return
