"""Answers that leave by one system call; uvicorn alone makes one for the head and one for the body."""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol


class JoinedWrites:
    """A transport that gathers what is written to it until the event loop turns."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send it with whatever else is written in this turn."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Close after what has been written."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:  # the rest of a transport
        return getattr(self._transport, name)

    def _flush(self) -> None:
        if self._parts:
            self._transport.write(b"".join(self._parts))
            self._parts = []


class OneWriteProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # chosen when uvicorn is imported
    """HTTP as uvicorn speaks it, with joined writes."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Put the gathering of writes between."""
        super().connection_made(JoinedWrites(transport, self.loop))
