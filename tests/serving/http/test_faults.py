"""Requests of any kind, and a database that goes away."""

import random
import time
from contextlib import suppress

import pytest

from postgresql import kill_server, postgresql_server, restart_server
from served import running, save_model, settings_of
from towpath.serving.exposure_log.read import read_log

PATHS = ("/recommend", "/similar", "/outcomes", "/admin/models", "/metrics", "/none")
PIECES = (
    b"{", b"}", b"[", b"]", b":", b",", b'"user"', b'"item"', b'"k"', b'"exclude"', b'"u1"', b'"i1"', b"5",
    b"-1", b"1e400", b"99999999999999999999", b"null", b"true", b'"\\ud800"', b'"\\u0000"', b"\xff",
    b'"' + b"x" * 300 + b'"', b'"kind":"click"', b'"event_id":"e"', b'"request_id":"r"', b"NaN", b" ",
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model") / "mf")


def test_whatever_is_sent_the_server_neither_fails_nor_stops(model, tmp_path):
    """500 of the 10,000 requests of benchmarks/serving_faults.py, of another make."""
    draw = random.Random(0)
    with running(settings_of(tmp_path / "log", only=model)) as client:
        for _ in range(500):
            body = b"".join(draw.choices(PIECES, k=draw.randint(0, 12)))
            method = draw.choice(["POST", "POST", "POST", "GET", "DELETE"])
            status, _ = client.ask(method, draw.choice(PATHS), body)
            assert status < 500, (method, body)
        assert client.recommend("u1")["items"]


def test_a_database_that_goes_away_refuses_requests_until_it_is_back(model):
    with postgresql_server() as server, running(settings_of(server.get_uri(), only=model)) as client:
        answered = [client.recommend(f"u{n}") for n in range(5)]
        client.click(answered[0])
        assert answered[0]["items"][0]["id"] not in {
            s["id"] for s in client.recommend("u0", k=40 - 13)["items"]
        }
        kill_server(server)
        statuses = set()
        deadline = time.monotonic() + 30
        while 503 not in statuses and time.monotonic() < deadline:
            status, answer = client.post("/recommend", {"user": "u9"})
            statuses.add(status)
            if status == 200:  # the killed server's last process has still written it
                answered.append(answer)
        assert 503 in statuses
        restart_server(server)
        with suppress(AssertionError):
            client.recommend("u1")  # the first may find the old connection gone
        answered.append(client.recommend("u1"))
        logged = read_log(server.get_uri()).requests["request_id"].to_pylist()
        assert {answer["request_id"] for answer in answered} <= set(logged)
        assert len(set(logged)) == len(logged)
