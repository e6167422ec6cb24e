"""The peak memory of a command, child processes included."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_EVERY = 0.02  # seconds between two looks
TOWPATH = (sys.executable, "-c", "from towpath.cli import main; raise SystemExit(main())")


@dataclass(frozen=True)
class Measured:
    """What a command took."""

    seconds: float
    cpu_seconds: float
    peak: int  # bytes that the process and all processes below it held at the same time
    own: int  # the same without pages of files, which the system can drop when memory is short
    output: str

    @property
    def megabytes(self) -> int:
        """The peak in units of 10^6 bytes."""
        return round(self.peak / 1e6)


def measure(command: Sequence[str]) -> Measured:
    """Run the command and say what it took; raises if it fails. Linux only: it reads /proc.

    The peak is the larger of two: what the kernel noted of the largest process, and the sum over all
    processes of the tree, looked at every 20 milliseconds.
    """
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peaks = [0, 0]
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, peaks, over))
        watcher.start()
        assert process.stdout is not None  # it was asked for
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        over.set()
        watcher.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    seconds = time.perf_counter() - start
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return Measured(seconds, cpu_seconds, max(peaks[0], usage.ru_maxrss * 1024), peaks[1], output)


def _watch(pid: int, peaks: list[int], over: threading.Event) -> None:
    while not over.wait(_EVERY):
        held = [_resident(one) for one in _tree(pid)]
        peaks[:] = (max(peak, sum(now)) for peak, now in zip(peaks, zip(*held, strict=True), strict=True))


def _tree(pid: int) -> Iterator[int]:
    """The process and all that it started."""
    yield pid
    try:
        children = [
            int(child)
            for thread in Path(f"/proc/{pid}/task").iterdir()
            for child in (thread / "children").read_text().split()
        ]
    except OSError:  # it has just ended
        return
    for child in children:
        yield from _tree(child)


def _resident(pid: int) -> tuple[int, int]:
    """Bytes in memory: all of them, and those that are not pages of files."""
    try:
        pages = [int(word) for word in Path(f"/proc/{pid}/statm").read_text().split()]
        return pages[1] * _PAGE, (pages[1] - pages[2]) * _PAGE
    except (OSError, IndexError):
        return 0, 0
