"""HTTP as uvicorn speaks it, with two changes.

Answers leave by one system call, where uvicorn makes one for the head and one for the body. The head of a
request has a limit, which uvicorn leaves out where httptools parses it: one client could fill the memory.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_MOST_HEAD = 65_536  # bytes of a request before its body; that of h11, which has a limit of its own


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
    """One connection; `on_message_begin` and `on_headers_complete` are called by httptools alone."""

    _in_head = False
    _head = 0  # bytes of the head that have come in parts so far

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Put the gathering of writes between."""
        super().connection_made(JoinedWrites(transport, self.loop))

    def data_received(self, data: bytes) -> None:
        """Refuse a head without end."""
        if self._in_head:
            self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > _MOST_HEAD:
            self._in_head = False
            self.send_400_response(f"The head of a request may have at most {_MOST_HEAD} bytes; send less.")

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head, self._head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its body follows."""
        self._in_head = False
        super().on_headers_complete()
