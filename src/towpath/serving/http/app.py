"""The endpoints, on starlette; those that carry the traffic are plain ASGI inside it."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from towpath.serving.clock import seconds
from towpath.serving.exposure_log.store import LogError
from towpath.serving.http.counters import to_prometheus
from towpath.serving.http.messages import ENCODER, OUTCOMES, RECOMMEND, SIMILAR, SWAP, Refused
from towpath.serving.http.openapi import openapi_document
from towpath.serving.http.service import Service
from towpath.serving.http.status_page import status_html

_JSON = b"application/json"
# More in one request would keep other requests waiting.
_MOST_OUTCOMES = 1_000
_LOG = logging.getLogger("towpath.serving")

Work = Callable[[bytes], Awaitable[bytes]]


def make_app(service: Service) -> ASGIApp:
    """The application of one worker."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    endpoints = Endpoints(service)
    posts = {
        "/recommend": endpoints.recommend,
        "/similar": endpoints.similar,
        "/outcomes": endpoints.outcomes,
        "/admin/models": endpoints.swap,
    }
    gets = {
        "/health": endpoints.health,
        "/ready": endpoints.ready,
        "/openapi.json": endpoints.openapi,
        "/metrics": endpoints.metrics,
        "/": endpoints.page,
    }
    asked = {path: Endpoint(service, path, work) for path, work in posts.items()}
    routes = [Route(path, endpoint, methods=["POST"]) for path, endpoint in asked.items()]
    routes += [Route(path, Endpoint(service, path, work), methods=["GET"]) for path, work in gets.items()]
    starlette = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _not_found})
    # A redirect would go to whatever host the request names.
    starlette.router.redirect_slashes = False

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # What carries the traffic needs no search for its route.
        usual = asked.get(scope["path"]) if scope.get("method") == "POST" else None
        await (usual or starlette)(scope, receive, send)

    return app


class Endpoints:
    """What each endpoint does with the body of a request."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._answerer = service.answerer

    async def recommend(self, body: bytes) -> bytes:
        """POST /recommend."""
        served = await self._service.serve(self._answerer.recommend(RECOMMEND.decode(body)))
        return ENCODER.encode(served.answer)

    async def similar(self, body: bytes) -> bytes:
        """POST /similar."""
        served = await self._service.serve(self._answerer.similar(SIMILAR.decode(body)))
        return ENCODER.encode(served.answer)

    async def outcomes(self, body: bytes) -> bytes:
        """POST /outcomes."""
        decoded = OUTCOMES.decode(body)
        found = decoded if isinstance(decoded, list) else [decoded]
        if len(found) > _MOST_OUTCOMES:
            raise Refused(413, f"At most {_MOST_OUTCOMES:,} outcomes in one request; send them in parts.")
        await self._service.note(found)
        return ENCODER.encode({"received": len(found)})

    async def swap(self, body: bytes) -> bytes:
        """POST /admin/models."""
        asked = SWAP.decode(body)
        version = await self._service.swap(asked)
        return ENCODER.encode({"arm": asked.arm, "model_version": version})

    async def health(self, _: bytes) -> bytes:
        """GET /health."""
        return ENCODER.encode({"status": "ok"})

    async def ready(self, _: bytes) -> bytes:
        """GET /ready."""
        if not self._service.ready:
            raise Refused(503, "The models are not loaded yet; ask again.")
        arms = {name: self._answerer.models[name].version for name in self._service.folders}
        return ENCODER.encode({"status": "ready", "arms": arms})

    async def openapi(self, _: bytes) -> bytes:
        """GET /openapi.json."""
        return ENCODER.encode(openapi_document())

    async def metrics(self, _: bytes) -> bytes:
        """GET /metrics."""
        return to_prometheus(self._service.total(), self._service.settings.workers).encode()

    async def page(self, _: bytes) -> bytes:
        """GET /."""
        return status_html(self._service).encode()


_TYPES = {"/metrics": b"text/plain; version=0.0.4; charset=utf-8", "/": b"text/html; charset=utf-8"}
# Whoever runs the server asks these all the time, from places that have no token.
_OPEN = ("/health", "/ready", "/openapi.json")


class Endpoint:
    """One path as an ASGI application: admits, reads, works, answers, counts."""

    def __init__(self, service: Service, path: str, work: Work) -> None:
        self._service, self._path, self._work = service, path, work
        self._headers = [(b"content-type", _TYPES.get(path, _JSON))]
        self._most = service.settings.limits.most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        began = seconds()
        headers = self._headers
        try:
            self._admit(scope)
            body = await _read(receive, self._most)
            status, content = 200, await self._work(body)
        except Refused as refusal:
            status, content = refusal.status, _error(str(refusal))
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            status, content = 400, _error(f"The body does not fit: {error}; see /openapi.json.")
        except LogError as error:
            status, content = 503, _error(str(error))
        except Exception:
            _LOG.exception("A request to %s failed", self._path)
            status, content = (
                500,
                _error("This is a bug in Towpath; the server's standard error has the rest."),
            )
        if status != 200:
            headers = [(b"content-type", _JSON)]
        length = (b"content-length", str(len(content)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": content})
        self._service.counters.count(self._path, status, seconds() - began)

    def _admit(self, scope: Scope) -> None:
        service, path = self._service, self._path
        if path in _OPEN:
            return
        client = scope.get("client")
        service.rate.check(client[0] if client else "")
        needs_admin = path.startswith("/admin")
        if needs_admin and service.tokens.needed and not service.admin_tokens.needed:
            raise Refused(403, "This server has no --admin-token-file, so models cannot be swapped.")
        tokens = service.admin_tokens if needs_admin else service.tokens
        if tokens.needed:
            tokens.check(next((value for name, value in scope["headers"] if name == b"authorization"), None))


async def _read(receive: Receive, most: int) -> bytes:
    """The body of a request."""
    message: Message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False):
        if len(body) > most:
            break
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "The request was cut short.")
        body += message.get("body", b"")
    if len(body) > most:
        raise Refused(413, f"The body of a request may have at most {most:,} bytes; send less.")
    return body


def _error(sentence: str) -> bytes:
    return ENCODER.encode({"error": sentence})


async def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers: Any = getattr(error, "headers", None)
    sentence = "There is no such path, or not for this method; see /openapi.json."
    return Response(_error(sentence), status, headers, media_type="application/json")
