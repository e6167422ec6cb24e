"""The parent of several workers: starts them, starts them again, stops them."""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from towpath.errors import TowpathError
from towpath.files import scratch_folder
from towpath.serving.http.listening import Task
from towpath.serving.http.settings import Place, ServerSettings, Tls

# How often the parent looks after its workers.
_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_TO_STOP = 15.0
CANNOT = 2  # the exit code of a worker that was told what cannot be


def supervise(
    settings: ServerSettings, listening: socket.socket, seed: int, tls: Tls, command: Sequence[str]
) -> None:
    """Run several workers, each started again if it dies, until told to stop.

    `command` starts a worker that calls `work_for_parent` with its standard input.
    """
    stopping = threading.Event()
    with scratch_folder("serve-") as folder, _signals(stopping):
        places = [Place(number, folder, seed) for number in range(settings.workers)]
        tasks = [Task(settings, listening.fileno(), place, tls) for place in places]
        workers = [_start(task, command) for task in tasks]
        try:
            while not stopping.wait(_SECONDS_BETWEEN_LOOKS):
                for number, worker in enumerate(workers):
                    if worker.poll() == CANNOT:
                        raise TowpathError("A worker could not start; the line above says why.")
                    if worker.poll() is not None:
                        _close(worker)
                        workers[number] = _start(tasks[number], command)
        finally:
            _stop(workers)


def _start(task: Task, command: Sequence[str]) -> "subprocess.Popen[bytes]":
    worker = subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, pass_fds=(task.descriptor,), start_new_session=True
    )
    assert worker.stdin is not None
    with suppress(BrokenPipeError):  # it has died already; the next look starts another
        worker.stdin.write(task.to_json().encode())
        worker.stdin.flush()
    return worker


def _stop(workers: "Sequence[subprocess.Popen[bytes]]") -> None:
    for worker in workers:
        if worker.poll() is None:
            worker.terminate()
    for worker in workers:
        try:
            worker.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
        _close(worker)


def _close(worker: "subprocess.Popen[bytes]") -> None:
    if worker.stdin is not None:
        with suppress(BrokenPipeError):
            worker.stdin.close()


@contextmanager
def _signals(stopping: threading.Event) -> Iterator[None]:
    """SIGTERM and Ctrl-C set the event."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda *_: stopping.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
