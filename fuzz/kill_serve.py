"""A server killed at a random moment while it is asked: what it has answered is in its log, once.

The server is `towpath serve` in a forked process with two arms. After the kill it is started again on the
same log: it must answer, and the log must then hold every answer that any client has seen.
"""

import http.client
import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from towpath.serving.exposure_log.export import export_log
from towpath.serving.exposure_log.read import read_log

SECONDS_TO_START = 60.0


def attack(
    start: Callable[[tuple[str, ...]], int], runs: tuple[Path, Path], log: Path, rng: np.random.Generator
) -> str:
    """Kill a server once; raises unless every answer of both servers is in the log, once.

    `start` forks a process that runs a command and gives its id.
    """
    port = _free_port()
    words = (
        "serve",
        "--arm",
        f"a={runs[0]}",
        "--arm",
        f"b={runs[1]}",
        "--log",
        str(log),
        "--port",
        str(port),
    )
    seen: dict[str, str | None] = {}  # request -> the item that was clicked
    number = signal.SIGKILL if rng.random() < 0.7 else signal.SIGTERM
    process = start(words)
    # Sometimes before it listens, mostly while it answers.
    if rng.random() < 0.8:
        _wait_until_ready(port, process)
    _ask_for(port, float(rng.random()) * 0.4, seen, rng)
    os.kill(process, number)
    os.waitpid(process, 0)
    again = start(words)
    _wait_until_ready(port, again)
    before = len(seen)
    _ask_for(port, 0.05, seen, rng)
    os.kill(again, signal.SIGTERM)
    os.waitpid(again, 0)
    assert len(seen) > before, "the server that was started again does not answer"
    _check(log, seen)
    return "killed" if number == signal.SIGKILL else "terminated"


def _check(log: Path, seen: dict[str, str | None]) -> None:
    tables = read_log(str(log))
    requests = Counter(tables.requests["request_id"].to_pylist())
    assert max(requests.values()) == 1, "a request is in the log twice"
    lost = set(seen) - set(requests)
    assert not lost, f"{len(lost)} answers are not in the log"
    clicks = set(tables.outcomes["request_id"].to_pylist())
    unlogged = [request for request, item in seen.items() if item is not None and request not in clicks]
    assert not unlogged, f"{len(unlogged)} clicks that were received are not in the log"
    out = log.with_suffix(".parquet")
    rows = export_log(tables, out).rows
    assert rows == sum(len(json.loads(items)) for items in tables.requests["items"].to_pylist())


def _ask_for(port: int, seconds: float, seen: dict[str, str | None], rng: np.random.Generator) -> None:
    """Ask and click for so long; what was answered is noted."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            answer = _post(port, "/recommend", {"user": int(rng.integers(40)), "k": 3})
            if answer is None:
                return
            request, item = answer["request_id"], str(answer["items"][0]["id"])
            seen[request] = None
            event = {"event_id": f"e-{request}", "request_id": request, "item": item, "kind": "click"}
            if rng.random() < 0.5 and _post(port, "/outcomes", event) is not None:
                seen[request] = item
        except (OSError, http.client.HTTPException):
            return  # it does not listen yet


def _post(port: int, path: str, body: dict[str, Any]) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", path, json.dumps(body).encode())
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status < 500, content
        return json.loads(content) if answer.status == 200 else None
    finally:
        connection.close()


def _wait_until_ready(port: int, process: int) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        assert os.waitpid(process, os.WNOHANG)[0] == 0, "the server ended by itself"
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/ready")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.01)
        finally:
            connection.close()
    raise AssertionError("the server did not start")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
