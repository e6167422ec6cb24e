"""Servers for tests: on a free loopback port, in a thread of this process, gone afterwards."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("msgspec")

from contracts import SCORERS
from small import small_split
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.serving.artifact import artifact_of, save_artifact
from towpath.serving.exposure_log.store import LogSettings
from towpath.serving.http.listening import listen
from towpath.serving.http.server import make_server
from towpath.serving.http.service import Service
from towpath.serving.http.settings import ArmSettings, Place, ServerSettings

SPLIT = small_split()
# Seconds to wait for an answer: a swap waits for a worker that is just starting, and the machine may be busy.
PATIENCE = 90


def save_model(folder: Path, model: str = "mf", seed: int = 0) -> Path:
    """The artifact of a small model: users u0 … u59, items i0 … i39."""
    found = fit(SPLIT, Recipe(model, settings={**SCORERS[model], "epochs": 2}, seed=seed))
    save_artifact(artifact_of(found, SPLIT), folder)
    return folder


@dataclass(frozen=True)
class Client:
    """Asks one server."""

    port: int
    token: str | None = None

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def connected(self) -> socket.socket:
        """A connection, for what no client would send."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def get(self, path: str) -> tuple[int, bytes]:
        return self.ask("GET", path)

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON of the answer."""
        status, content = self.ask(
            "POST", path, body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        return status, json.loads(content)

    def recommend(self, user: Any, k: int = 5, **more: Any) -> Any:
        status, answer = self.post("/recommend", {"user": user, "k": k, **more})
        assert status == 200, answer
        return answer

    def click(self, answer: Any, place: int = 0, event: str | None = None, kind: str = "click") -> None:
        item = answer["items"][place]["id"]
        event = event or f"{answer['request_id']}-{item}-{kind}"
        body = {"event_id": event, "request_id": answer["request_id"], "item": item, "kind": kind}
        assert self.post("/outcomes", body) == (200, {"received": 1})


@contextmanager
def running(settings: ServerSettings, place: Place | None = None) -> Iterator[Client]:
    """A client of a server with these settings."""
    server = make_server(Service(settings, place or Place()))
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 30
        while not server.started and thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.started
        try:
            yield Client(listening.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def settings_of(log: Path | str | None, **folders: Path) -> ServerSettings:
    """One arm for each folder."""
    arms = tuple(ArmSettings(name, str(folder)) for name, folder in folders.items())
    return ServerSettings(arms=arms, log=None if log is None else LogSettings(str(log)))
