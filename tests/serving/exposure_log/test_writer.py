import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from small_logs import request
from towpath.serving.exposure_log.read import read_log
from towpath.serving.exposure_log.sqlite import SqliteStore
from towpath.serving.exposure_log.store import LogError, LogSettings, Store, open_store
from towpath.serving.exposure_log.writer import LogWriter


class Counting(Store):
    """Counts transactions; fails for users named `bad`."""

    def __init__(self) -> None:
        self.batches = []
        self.pruned = 0
        self.closed = False

    def write(self, rows):
        time.sleep(0.01)
        if any(row.user_id == "bad" for row in rows):
            raise LogError("refused")
        self.batches.append(len(rows))

    def prune(self, before):
        self.pruned += 1
        return 0

    def close(self):
        self.closed = True


def test_those_who_wait_together_share_a_commit():
    store = Counting()

    async def go():
        writer = LogWriter(lambda: store)
        await writer.ready()
        await asyncio.gather(*(writer.write([request(n, "ann", "a", n)]) for n in range(200)))
        await writer.close()

    asyncio.run(go())
    assert sum(store.batches) == 200
    assert store.batches == [200]
    assert store.closed


def test_a_refused_batch_is_refused_for_everyone_in_it_and_the_next_is_not():
    async def go():
        writer = LogWriter(Counting)
        await writer.ready()
        writes = [writer.write([request(n, user, "a", n)]) for n, user in enumerate(["ann", "bad", "bob"])]
        first = await asyncio.gather(*writes, return_exceptions=True)
        await writer.write([request(9, "ann", "a", 9)])
        await writer.close()
        return first

    found = asyncio.run(go())
    assert any(isinstance(one, LogError) for one in found)
    assert isinstance(found[1], LogError)


def test_a_store_that_cannot_be_opened_is_said_when_asked(tmp_path):
    (tmp_path / "file").write_text("")

    async def go():
        writer = LogWriter(lambda: SqliteStore(tmp_path / "file" / "exposures-0.sqlite"))
        await writer.ready()

    with pytest.raises(LogError, match="cannot be opened"):
        asyncio.run(go())


def test_what_waits_is_written_before_closing(tmp_path):
    async def go():
        writer = LogWriter(lambda: open_store(LogSettings(str(tmp_path))))
        waiting = [writer.write([request(n, "ann", "a", n)]) for n in range(50)]
        await writer.close()
        await asyncio.gather(*waiting)

    asyncio.run(go())
    assert len(read_log(str(tmp_path)).requests) == 50


_ENDLESS = """
    import asyncio, sys
    sys.path.insert(0, "tests")
    from small_logs import request
    from towpath.serving.exposure_log.store import LogSettings, open_store
    from towpath.serving.exposure_log.writer import LogWriter

    async def client(writer, number):
        while True:
            await writer.write([request(number, "ann", "a", number)])
            print(f"r{number}", flush=True)
            number += 16

    async def go():
        writer = LogWriter(lambda: open_store(LogSettings(sys.argv[1])))
        start = int(sys.argv[2])
        await asyncio.gather(*(client(writer, start + n) for n in range(16)))

    asyncio.run(go())
"""


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path):
    acknowledged = []
    for kill in range(3):
        command = [sys.executable, "-c", textwrap.dedent(_ENDLESS), str(tmp_path), str(kill * 10**6)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(100)]
        os.kill(process.pid, signal.SIGKILL)
        lines += [line.strip() for line in process.stdout.readlines() if line.endswith("\n")]
        process.wait()
        process.stdout.close()
        acknowledged += lines
    logged = read_log(str(tmp_path)).requests["request_id"].to_pylist()
    assert len(acknowledged) >= 300
    assert set(acknowledged) <= set(logged)
    assert len(set(logged)) == len(logged)
