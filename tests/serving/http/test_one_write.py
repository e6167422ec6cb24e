import asyncio

import pytest

pytest.importorskip("uvicorn")

from towpath.serving.http.one_write import JoinedWrites


class Recording:
    """A transport that remembers what was done to it."""

    def __init__(self) -> None:
        self.done = []

    def write(self, data):
        self.done.append(data)

    def close(self):
        self.done.append("closed")

    def is_closing(self):
        return "closed" in self.done


def test_what_is_written_in_one_turn_leaves_together():
    async def go():
        inner = Recording()
        transport = JoinedWrites(inner, asyncio.get_running_loop())
        transport.write(b"head")
        transport.write(b"body")
        assert inner.done == []
        await asyncio.sleep(0)
        transport.write(b"next")
        await asyncio.sleep(0)
        return inner.done

    assert asyncio.run(go()) == [b"headbody", b"next"]


def test_closing_sends_first_what_was_written():
    async def go():
        inner = Recording()
        transport = JoinedWrites(inner, asyncio.get_running_loop())
        transport.write(b"head")
        transport.close()
        assert transport.is_closing()
        await asyncio.sleep(0)
        return inner.done

    assert asyncio.run(go()) == [b"head", "closed"]
