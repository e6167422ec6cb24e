import json
import os
import re
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from served import SPLIT, Client, running, save_model, settings_of
from towpath.serving.exposure_log.export import export_log
from towpath.serving.exposure_log.read import files_of, read_log
from towpath.serving.exposure_log.sqlite import delete_user
from towpath.serving.exposure_log.store import LogSettings
from towpath.serving.http.settings import Access, Exploration, Limits
from towpath.serving.recommender import load


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return save_model(folder / "one"), save_model(folder / "two", seed=1)


@pytest.fixture
def settings(models, tmp_path):
    return settings_of(tmp_path / "log", control=models[0], new=models[1])


def test_every_answer_is_in_the_log_as_it_was_sent(settings, models, tmp_path):
    with running(settings) as client:
        answers = [client.recommend(f"u{n}", k=3) for n in range(20)]
        status, alike = client.post("/similar", {"item": "i7", "k": 4, "user": "u1"})
        assert status == 200
    log = read_log(str(tmp_path / "log"))
    rows = {row["request_id"]: row for row in log.requests.to_pylist()}
    for answer in [*answers, alike]:
        row = rows.pop(answer["request_id"])
        assert (row["arm"], row["model_version"]) == (answer["arm"], answer["model_version"])
        assert json.loads(row["items"]) == [slot["id"] for slot in answer["items"]]
        assert json.loads(row["scores"]) == [slot["score"] for slot in answer["items"]]
        assert json.loads(row["propensities"]) == [1.0] * len(answer["items"])
    assert rows == {}
    assert {answer["arm"] for answer in answers} == {"control", "new"}
    by_arm = {name: load(folder) for name, folder in zip(("control", "new"), models, strict=True)}
    for n, answer in enumerate(answers):
        mine = [slot["id"] for slot in answer["items"]]
        assert mine == list(by_arm[answer["arm"]].recommend(f"u{n}", 3).items)
    assert [slot["id"] for slot in alike["items"]] == list(by_arm[alike["arm"]].similar("i7", 4).items)
    assert json.loads(log.assignments.to_pylist()[0]["arms"]) == ["control", "new"]


def test_outcomes_count_once_and_what_was_clicked_is_not_shown_again(settings, tmp_path):
    with running(settings) as client:
        first = client.recommend("u3")
        client.click(first, 0)
        client.click(first, 0)  # a duplicate
        client.click(first, 1, kind="order")
        second = client.recommend("u3")
        clicked = {first["items"][place]["id"] for place in (0, 1)}
        assert not clicked & {slot["id"] for slot in second["items"]}
        events = [
            {"event_id": f"e{n}", "request_id": second["request_id"], "item": second["items"][0]["id"],
             "kind": "order", "units": 2, "value": 9.5}
            for n in (1, 2, 1)
        ]  # fmt: skip
        assert client.post("/outcomes", events) == (200, {"received": 3})
    with running(settings) as client:  # after a restart it is known from the log
        third = client.recommend("u3")
        assert third["arm"] == first["arm"]
        assert not clicked & {slot["id"] for slot in third["items"]}
    found = export_log(read_log(str(tmp_path / "log")), tmp_path / "out.parquet")
    assert (found.rows, found.clicked, found.ordered) == (15, 1, 2)
    outcomes = read_log(str(tmp_path / "log")).outcomes.to_pylist()
    assert sum(row["value"] for row in outcomes) == 19
    assert sum(row["units"] for row in outcomes) == 5  # an order without units has one


def test_a_user_who_is_deleted_from_the_log_is_forgotten_by_the_running_server(settings, tmp_path):
    with running(settings) as client:
        kept, gone = (client.recommend(user) for user in ("u1", "u2"))
        for answer in (kept, gone):
            client.click(answer)
        delete_user(files_of(tmp_path / "log"), "u2")
        first = gone["items"][0]["id"]
        deadline = time.monotonic() + 20
        while client.recommend("u2")["items"][0]["id"] != first:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert kept["items"][0] not in client.recommend("u1")["items"]


def test_ids_may_be_numbers_or_text(settings):
    with running(settings) as client:
        assert client.recommend(17)["fallback"]  # no such user: the most popular
        assert [s["id"] for s in client.recommend("17")["items"]] == [
            s["id"] for s in client.recommend(17)["items"]
        ]


def test_exploration_is_logged_with_its_chances(settings, tmp_path):
    exploring = replace(settings, exploration=Exploration(epsilon=0.5))
    with running(exploring) as client:
        answers = [client.recommend("u1") for _ in range(20)]
    propensities = {slot["propensity"] for answer in answers for slot in answer["items"]}
    assert len({tuple(s["id"] for s in answer["items"]) for answer in answers}) > 5
    assert all(0 < p <= 1 for p in propensities)
    assert len(propensities) > 2
    logged = read_log(str(tmp_path / "log")).requests["propensities"].to_pylist()
    assert json.loads(logged[0]) == [slot["propensity"] for slot in answers[0]["items"]]


def test_the_holdout_keeps_the_first_model_without_exploration(settings, models):
    held = replace(settings, holdout=0.5, exploration=Exploration(epsilon=0.9))
    with running(held) as client:
        answers = [(f"u{n}", client.recommend(f"u{n}")) for n in range(30)]
    first = load(models[0])
    kept = [(user, answer) for user, answer in answers if answer["arm"] == "holdout"]
    assert 5 < len(kept) < 25
    for user, answer in kept:
        assert [s["id"] for s in answer["items"]] == list(first.recommend(user, 5).items)


def test_an_arm_is_swapped_while_it_answers(settings, models, tmp_path):
    with running(settings) as client:
        before = {client.recommend(f"u{n}")["model_version"] for n in range(10)}
        status, told = client.post("/admin/models", {"arm": "control", "run": str(models[1])})
        assert status == 200
        after = {client.recommend(f"u{n}")["model_version"] for n in range(10)}
        assert len(before) == 2
        assert after == {told["model_version"]}
        assert json.loads(client.get("/ready")[1])["arms"]["control"] == told["model_version"]
        status, told = client.post("/admin/models", {"arm": "old", "run": str(models[1])})
        assert (status, told["error"]) == (404, "There is no such arm; the arms are control, new.")
        status, told = client.post("/admin/models", {"arm": "new", "run": str(tmp_path)})
        assert status == 400
        assert "no saved artifact" in told["error"]
        assert {client.recommend(f"u{n}")["model_version"] for n in range(10)} == after
    versions = read_log(str(tmp_path / "log")).requests["model_version"].to_pylist()
    assert set(versions[:10]) == before
    assert set(versions[10:]) == after


def test_tokens_are_asked_for_and_read_again_when_they_change(settings, tmp_path):
    users, admins = tmp_path / "tokens", tmp_path / "admins"
    users.write_text("alpha\nbeta\n")
    admins.write_text("gamma\n")
    guarded = replace(settings, access=Access(str(users), str(admins)))
    with running(guarded) as client:
        assert client.post("/recommend", {"user": "u1"})[0] == 401
        assert client.get("/metrics")[0] == 401
        assert client.get("/health")[0] == 200
        assert client.get("/ready")[0] == 200
        beta, gamma = Client(client.port, "beta"), Client(client.port, "gamma")
        assert beta.post("/recommend", {"user": "u1"})[0] == 200
        assert beta.post("/admin/models", {"arm": "new", "run": "x"})[0] == 401
        assert gamma.post("/admin/models", {"arm": "new", "run": "x"})[0] == 400
        assert gamma.post("/recommend", {"user": "u1"})[0] == 401
        users.write_text("alpha\n")
        os.utime(users, ns=(1, 1))
        time.sleep(1.1)
        assert beta.post("/recommend", {"user": "u1"})[0] == 401
        assert Client(client.port, "alpha").post("/recommend", {"user": "u1"})[0] == 200
    no_admin = replace(settings, access=Access(str(users)))
    with running(no_admin) as client:
        assert Client(client.port, "alpha").post("/admin/models", {"arm": "new", "run": "x"})[0] == 403


def test_a_log_that_is_full_refuses_and_nothing_unlogged_is_served(settings, tmp_path):
    small = replace(settings, log=LogSettings(str(tmp_path / "log"), most_megabytes=1))
    served = []
    with running(small) as client:
        for n in range(20_000):
            status, answer = client.post("/recommend", {"user": f"u{n % 60}", "k": 28})
            if status != 200:
                break
            served.append(answer["request_id"])
        assert status == 503
        assert "cannot be written" in answer["error"]
        assert client.get("/health")[0] == 200
    assert read_log(str(tmp_path / "log")).requests["request_id"].to_pylist() == served


def test_metrics_page_and_document(settings):
    with running(settings) as client:
        client.click(client.recommend("u1"))
        client.post("/recommend", {"user": "u1", "k": 0})
        text = client.get("/metrics")[1].decode()
        assert 'towpath_requests_total{endpoint="/recommend",status="200"} 1' in text
        assert 'towpath_requests_total{endpoint="/recommend",status="400"} 1' in text
        assert 'towpath_outcomes_total{kind="click"} 1' in text
        assert re.search(r'towpath_answers_total\{arm="(control|new)",model_version="[0-9a-f]{12}"\} 1', text)
        assert 'towpath_request_seconds_bucket{endpoint="/recommend",le="+Inf"} 2' in text
        assert sorted(re.findall(r"towpath_split_users\{arm=.*\} (\d)", text)) == ["0", "1"]
        assert "towpath_split_evidence " in text
        document = json.loads(client.get("/openapi.json")[1])
        assert set(document["paths"]) > {"/recommend", "/similar", "/outcomes"}
        assert "RecommendBody" in document["components"]["schemas"]
        assert {"400", "404", "409", "503"} < set(document["paths"]["/similar"]["post"]["responses"])
        page = client.get("/")[1].decode()
        assert "Towpath server" in page
        assert "control" in page
        assert "Users are split between the arms as configured" in page
        assert "<script" not in page


BAD = [
    (b"", 400, "does not fit"),
    (b"{", 400, "does not fit"),
    (b"[]", 400, "does not fit"),
    (b"\xff\xfe", 400, "does not fit"),
    (b"[" * 100_000, 400, "does not fit"),
    (b'{"user": "u1", "k": 0}', 400, "does not fit"),
    (b'{"user": "u1", "k": 1000000000}', 400, "k must lie between 1 and 40"),
    (b'{"user": "u1", "k": 41}', 400, "k must lie between 1 and 40"),
    (b'{"user": "u1", "k": "five"}', 400, "does not fit"),
    (b'{"user": null}', 400, "does not fit"),
    (b'{"user": ""}', 400, "does not fit"),
    (b'{"user": "a\\u0000b"}', 400, "code 0"),
    (b'{"user": 99999999999999999999999}', 400, "does not fit"),
    (b'{"user": "u1", "wishes": 3}', 400, "unknown field"),
    (b'{"user": "' + b"x" * 300 + b'"}', 400, "does not fit"),
    (b'{"user": "u1", "exclude": [' + b"1," * 600 + b"1]}", 400, "at most 500"),
    (b'{"user": "' + b"x" * 200_000 + b'"}', 413, "at most 150,000 bytes"),
]


def test_hostile_requests_get_a_sentence(settings):
    strict = replace(settings, limits=Limits(most_bytes=150_000, most_ids=500))
    with running(strict) as client:
        for body, status, said in BAD:
            found, told = client.post("/recommend", body)
            assert (found, said in told["error"]) == (status, True), (body[:50], told)
        assert client.post("/similar", {"item": "none"})[0] == 404
        assert (
            client.post("/outcomes", {"event_id": "e", "request_id": "r", "item": "i", "kind": "view"})[0]
            == 400
        )
        worth = {"event_id": "e", "request_id": "r", "item": "i", "kind": "order", "value": -1}
        assert client.post("/outcomes", worth)[0] == 400
        assert client.get("/recommend")[0] == 405
        assert client.get("/none")[0] == 404
        assert client.post("/recommend/", {"user": "u1"})[0] == 404  # no redirect to whatever host was named
        assert client.recommend("u1")["items"]


def test_a_head_without_end_is_refused_and_one_in_parts_is_not(settings):
    with running(settings) as client, client.connected() as connection:
        for part in (
            b"GET /health HTTP/1.1\r\nHost: ",
            b"x" * 30_000,
            b"\r\nX: " + b"y" * 30_000,
            b"\r\n\r\n",
        ):
            connection.sendall(part)
            time.sleep(0.01)
        assert connection.recv(1_000).startswith(b"HTTP/1.1 200")
        assert send_until_hung_up(connection) < 1_000
        assert client.get("/health")[0] == 200


def send_until_hung_up(connection):
    """How many headers of 20,000 bytes were sent of a thousand."""
    with suppress(OSError):
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        for number in range(1_000):
            connection.sendall(b"X-%d: %s\r\n" % (number, b"z" * 20_000))
            time.sleep(0.001)
        return 1_000
    return number


def test_what_is_no_http_gets_a_sentence_and_leaves_no_line(settings, capfd):
    with running(settings) as client:
        capfd.readouterr()
        for hostile in (b"GARBAGE\r\n\r\n", b"POST /recommend HTTP/1.1\r\nContent-Length: many\r\n\r\n"):
            with client.connected() as connection:
                connection.sendall(hostile)
                assert connection.recv(1_000).startswith(b"HTTP/1.1 400")
        with client.connected() as connection:
            connection.sendall(b"GET /x HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            assert connection.recv(1_000).startswith(b"HTTP/1.1 404")
        assert capfd.readouterr().err == ""


def test_event_ids_may_be_numbers_and_what_a_click_lacks_may_be_null(models, tmp_path):
    with running(settings_of(tmp_path / "log", control=models[0])) as client:
        answer = client.recommend("u1")
        event = {"event_id": 7, "request_id": answer["request_id"], "item": answer["items"][0]["id"],
                 "kind": "click", "units": None, "value": None}  # fmt: skip
        assert client.post("/outcomes", event) == (200, {"received": 1})
        assert client.post("/outcomes", [event, {**event, "event_id": "7"}]) == (200, {"received": 2})
    (row,) = read_log(str(tmp_path / "log")).outcomes.to_pylist()
    assert (row["event_id"], row["units"], row["value"]) == ("7", 0.0, 0.0)


def test_a_rate_limit_holds_for_each_client(settings):
    slow = replace(settings, limits=Limits(per_second=5))
    with running(slow) as client:
        statuses = [client.post("/recommend", {"user": "u1"})[0] for _ in range(30)]
        assert statuses[:5] == [200] * 5
        assert 429 in statuses
        assert client.get("/health")[0] == 200


def test_similar_is_refused_where_a_model_does_not_know(tmp_path):
    folder = save_model(tmp_path / "popularity", "popularity")
    with running(settings_of(None, only=folder)) as client:
        status, told = client.post("/similar", {"item": SPLIT.train.item_ids.ids([0])[0]})
        assert status == 409
        assert "does not know which items are alike" in told["error"]
