"""A worker with its network."""

import gc
import os
import signal
import socket
import sys
import threading

import uvicorn

from towpath.errors import ConfigError
from towpath.serving.exposure_log.store import open_store
from towpath.serving.http.app import make_app
from towpath.serving.http.listening import BACKLOG, Task
from towpath.serving.http.one_write import OneWriteProtocol
from towpath.serving.http.service import Service
from towpath.serving.http.settings import Place, ServerSettings, Tls

_SECONDS_OF_A_TURN = 0.0005
_PLAIN = Tls()


def make_server(service: Service, tls: Tls = _PLAIN) -> uvicorn.Server:
    """A server that answers when its `run(sockets=[...])` is called."""
    config = uvicorn.Config(
        make_app(service),
        http=OneWriteProtocol,
        access_log=False,
        log_level="error",  # its warnings are one line for each malformed request, which anybody can send
        ws="none",
        lifespan="on",
        timeout_keep_alive=30,
        backlog=BACKLOG,
        server_header=False,
        proxy_headers=False,  # nothing here depends on who the proxy says that the client is
        ssl_certfile=tls.certificate,
        ssl_keyfile=tls.key,
    )
    return uvicorn.Server(config)


def run_worker(settings: ServerSettings, listening: socket.socket, place: Place, tls: Tls) -> None:
    """Serve until told to stop; a worker alone is the whole server."""
    import torch

    torch.set_num_threads(1)  # small products: more threads only get in each other's way
    # The thread that writes the log must not wait five milliseconds, Python's default, for each of its turns.
    sys.setswitchinterval(_SECONDS_OF_A_TURN)
    service = Service(settings, place)
    if settings.log is not None:
        open_store(settings.log, place.worker).close()  # what cannot be is said now, in one sentence
        service.seen.load()
    server = make_server(service, tls)
    # Models and libraries stay: looking through them for garbage again and again makes requests wait.
    gc.collect()
    gc.freeze()
    # Told to stop, it ends its requests and raises the signal again, which then ends the process in silence.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    server.run(sockets=[listening])
    if not server.started:
        raise ConfigError("The server could not start; the lines above say why.")


def work_for_parent(lifeline: int) -> None:
    """Serve as one of several workers, and vanish when the parent does.

    lifeline: a descriptor from which the task is read; it ends when the parent is gone.
    """
    task = Task.from_json(_line_from(lifeline))

    def watch() -> None:
        os.read(lifeline, 1)
        os._exit(1)  # nobody is left to restart or stop this worker, and the port must be free

    threading.Thread(target=watch, name="lifeline", daemon=True).start()
    run_worker(task.settings, socket.socket(fileno=task.descriptor), task.place, task.tls)


def _line_from(descriptor: int) -> str:
    """The first line, read byte by byte: what follows is for nobody."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(descriptor, 1)
        if not more:
            raise ConfigError("The parent of this worker is gone before it said what to do.")
        line += more
    return line.decode()
