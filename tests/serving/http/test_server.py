"""The server as a program: several workers, signals, and what is left when somebody is killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from served import Client, save_model
from towpath.serving.exposure_log.read import read_log

PROGRAM = [sys.executable, "-c", "from towpath.cli import main; raise SystemExit(main())", "serve"]
PATIENCE = 180


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def children_of(pid):
    """The processes that this one has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def alive(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def until(happens, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(OSError):
            if happens():
                return True
        time.sleep(0.05)
    return False


def can_listen(port):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", port))
        one.listen()
        return True


@contextmanager
def program(model, log, *options, workers=1):
    """The process of a server that is ready, and a client."""
    port = free_port()
    arms = ["--arm", f"control={model}", "--arm", f"new={model}", "--log", str(log), "--port", str(port)]
    process = subprocess.Popen([*PROGRAM, *arms, "--workers", str(workers), "--quiet", *options])
    client = Client(port)
    try:
        assert until(lambda: client.get("/ready")[0] == 200)
        yield process, client
    finally:
        workers = children_of(process.pid)
        process.kill()
        process.wait()
        for worker in workers:
            with suppress(OSError):
                os.kill(worker, signal.SIGKILL)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model") / "mf")


class Traffic:
    """Asks from several threads and keeps what was answered."""

    def __init__(self, client):
        self.client, self.answered, self.errors = client, [], []
        self._going = True
        self._threads = [threading.Thread(target=self._ask, args=(n,), daemon=True) for n in range(4)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number):
        while self._going:
            number += 1
            try:
                status, answer = self.client.post("/recommend", {"user": f"u{number % 60}", "k": 3})
            except (OSError, ValueError) as error:
                self.errors.append(repr(error))
                time.sleep(0.02)
                continue
            if status == 200:
                self.answered.append((answer["request_id"], answer["model_version"]))
                if not answer[
                    "items"
                ]:  # this user has clicked all of them, since the worker took long to start
                    continue
                event = {"event_id": f"e-{answer['request_id']}", "request_id": answer["request_id"],
                         "item": answer["items"][0]["id"], "kind": "click"}  # fmt: skip
                with suppress(OSError, ValueError):
                    self.client.post("/outcomes", [event, event])
            else:
                self.errors.append((status, answer))

    def stop(self):
        self._going = False
        for thread in self._threads:
            thread.join(30)


def test_two_workers_agree_and_one_that_is_killed_comes_back(model, tmp_path):
    with program(model, tmp_path / "log", workers=2) as (process, client):
        assert until(lambda: len(list((tmp_path / "log").glob("exposures-?.sqlite"))) == 2)
        arms = {f"u{n}": {client.recommend(f"u{n}")["arm"] for _ in range(6)} for n in range(20)}
        assert all(len(found) == 1 for found in arms.values())
        traffic = Traffic(client)
        first, second = children_of(process.pid)
        os.kill(first, signal.SIGKILL)
        assert until(lambda: len(set(children_of(process.pid)) - {first}) == 2)
        swapped = client.post("/admin/models", {"arm": "new", "run": str(model)})
        assert swapped[0] == 200
        time.sleep(0.5)
        traffic.stop()
        assert alive(second)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    requests = read_log(str(tmp_path / "log")).requests["request_id"].to_pylist()
    assert {request for request, _ in traffic.answered} <= set(requests)
    assert len(set(requests)) == len(requests)


def test_a_parent_that_is_killed_leaves_no_orphan_and_a_free_port(model, tmp_path):
    with program(model, tmp_path / "log", workers=2) as (process, client):
        workers = children_of(process.pid)
        assert len(workers) == 2
        process.kill()
        process.wait()
        assert until(lambda: not any(alive(worker) for worker in workers), 10)
        # The threads of a process may live a moment longer than its entry says.
        assert until(lambda: can_listen(client.port), 10)


def test_killed_under_load_nothing_answered_is_unlogged_and_outcomes_count_once(model, tmp_path):
    with program(model, tmp_path / "log") as (process, client):
        traffic = Traffic(client)
        assert until(lambda: len(traffic.answered) > 150)
        process.kill()
        traffic.stop()
    log = read_log(str(tmp_path / "log"))
    requests = log.requests["request_id"].to_pylist()
    assert {request for request, _ in traffic.answered} <= set(requests)
    assert len(set(requests)) == len(requests)
    events = log.outcomes["event_id"].to_pylist()
    assert len(set(events)) == len(events) > 0


def test_a_worker_that_cannot_start_stops_the_server_with_a_sentence(tmp_path):
    options = ["--arm", f"a={tmp_path}", "--log", tmp_path / "log", "--port", free_port(), "--workers", 2]
    done = subprocess.run([*PROGRAM, *map(str, options)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "no saved artifact" in done.stderr
    assert (
        done.stderr.strip().splitlines()[-1] == "towpath: A worker could not start; the line above says why."
    )
    assert "Fatal" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_lone_server_stops_when_told_and_says_nothing(model, tmp_path):
    port = free_port()
    arguments = ["--arm", f"a={model}", "--log", str(tmp_path / "log"), "--port", str(port)]
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert until(lambda: Client(port).get("/ready")[0] == 200)
    assert json.loads(Client(port).get("/health")[1]) == {"status": "ok"}
    assert Client(port).recommend("u1")["items"]
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE)
    assert out == ""
    assert err.strip() == f"Serving a on http://127.0.0.1:{port}"  # and no line for each request
