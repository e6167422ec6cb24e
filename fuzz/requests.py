"""Requests to the server, without its network."""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.mutators import Rng, as_json, changed, damaged
from fuzz.runs import make_run


@dataclass
class Requests:
    """Requests to the server, without its network: 200 or 4xx with JSON, never 500."""

    folder: Path

    def __post_init__(self) -> None:
        from towpath.serving.http.app import make_app
        from towpath.serving.http.service import Service
        from towpath.serving.http.settings import ArmSettings, Place, ServerSettings

        logging.getLogger("towpath.serving").setLevel(logging.CRITICAL)
        make_run(self.folder / "served", 0, 0)
        self._loop = asyncio.new_event_loop()
        settings = ServerSettings(arms=(ArmSettings("a", str(self.folder / "served")),), log=None)
        service = self._loop.run_until_complete(_made(lambda: Service(settings, Place())))
        self._loop.run_until_complete(service.start())
        self._app, self._service = make_app(service), service

    def close(self) -> None:
        """Stop what goes on in the background."""
        self._loop.run_until_complete(self._service.stop())
        self._loop.close()

    BODIES = (
        ("/recommend", {"user": 1, "k": 3, "candidates": [1, 2, 3], "exclude": [1]}),
        ("/recommend", {"user": "1", "k": 5}),
        ("/recommend", {"history": [1, 2], "k": 3}),
        ("/similar", {"item": 3, "k": 4}),
        ("/outcomes", [{"event_id": "e", "request_id": "r", "item": 1, "kind": "click"}]),
        ("/outcomes", {"event_id": "e", "request_id": "r", "item": 1, "kind": "order", "units": 1}),
    )  # fmt: skip

    def __call__(self, rng: Rng) -> str:
        path, body = self.BODIES[rng.integers(len(self.BODIES))]
        content = as_json(changed(body, rng), rng)
        if rng.random() < 0.2:
            content = damaged(content, rng)
        method = "POST" if rng.random() < 0.97 else ("GET", "PUT", "")[rng.integers(3)]
        path = path if rng.random() < 0.97 else damaged(path.encode(), rng).decode("latin-1")
        status, kind, answer = self._loop.run_until_complete(self._ask(method, path, content))
        assert status == 200 or 400 <= status < 500, f"{status} to {content[:200]!r}"
        if status != 200 or kind == b"application/json":  # the front page is HTML
            json.loads(answer)
        return "read" if status == 200 else "refused"

    async def _ask(self, method: str, path: str, content: bytes) -> tuple[int, bytes, bytes]:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(errors="replace"),
            "headers": [], "query_string": b"", "client": ("127.0.0.1", 1), "root_path": "", "scheme": "http",
            "server": ("127.0.0.1", 80), "http_version": "1.1",
        }  # fmt: skip
        await self._app(scope, receive, send)
        kind = dict(sent[0]["headers"])[b"content-type"]
        return sent[0]["status"], kind, b"".join(message.get("body", b"") for message in sent[1:])


async def _made(make: Callable[[], Any]) -> Any:
    return make()
