"""What a recommendation costs compared with a bare endpoint of the same stack: wrk, 32 connections, loopback.

python -m benchmarks.serving RUN [--seconds 5] [--rounds 3] [--out docs/results/serving/throughput.json]

Three servers, asked in turn: `hello` (starlette and uvicorn answering a constant), `without log` and `with
log` (towpath, one arm, lists of ten). For each: requests a second, processor microseconds a request, the 99th
percentile of the waiting time, errors. RUN is a run of towpath fit, such as mf on ml-1m. With --out the table
is written next to the numbers, as CSV.
"""

import argparse
import csv
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

HELLO = """
import socket, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
async def hello(request):
    return Response(b'{"hello":"world"}', media_type="application/json")
app = Starlette(routes=[Route("/recommend", hello, methods=["POST"]), Route("/ready", hello)])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning")
"""
TOWPATH = """
import os, sys
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
from towpath.serving.exposure_log.store import LogSettings
from towpath.serving.http.listening import listen
from towpath.serving.http.server import run_worker
from towpath.serving.http.settings import ArmSettings, Place, ServerSettings, Tls
log = LogSettings(sys.argv[3]) if sys.argv[3] else None
settings = ServerSettings(arms=(ArmSettings("only", sys.argv[2]),), log=log)
run_worker(settings, listen("127.0.0.1", int(sys.argv[1])), Place(), Tls())
"""
SCRIPT = """
wrk.method = "POST"
local n = 0
request = function()
  n = n + 1
  return wrk.format(nil, nil, nil, '{"user":' .. (1 + (n * 37) % 6040) .. ',"k":10}')
end
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def start(code: str, *arguments: str) -> tuple["subprocess.Popen[bytes]", int]:
    """A server that answers, and its port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", code, str(port), *arguments])
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=1):
                return process, port
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise SystemExit("a server did not start")


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(pid: int, port: int, seconds: int, script: Path) -> dict[str, float]:
    """What wrk measured, and what the server spent."""
    before = processor_seconds(pid)
    command = ["wrk", "-t1", "-c32", f"-d{seconds}s", "--latency", "-s", str(script)]
    said = subprocess.run([*command, f"http://127.0.0.1:{port}/recommend"], capture_output=True, text=True)
    spent = processor_seconds(pid) - before
    requests = int(re.search(r"(\d+) requests in", said.stdout)[1])  # type: ignore[index]
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", said.stdout).groups()  # type: ignore[union-attr]
    wrong = sum(map(int, re.findall(r"Non-2xx or 3xx responses: (\d+)", said.stdout)))
    wrong += sum(map(int, re.findall(r"(?:connect|read|write|timeout) (\d+)", said.stdout)))
    return {
        "per_second": float(re.search(r"Requests/sec:\s+([\d.]+)", said.stdout)[1]),  # type: ignore[index]
        "processor_us": 1e6 * spent / requests,
        "p99_ms": float(value) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit],
        "errors": wrong,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("This needs wrk (apt-get install wrk).")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "post.lua"
        script.write_text(SCRIPT)
        servers = {
            "hello": start(HELLO),
            "without log": start(TOWPATH, asked.run, ""),
            "with log": start(TOWPATH, asked.run, str(Path(folder) / "log")),
        }
        try:
            found: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
            for process, port in servers.values():
                ask(process.pid, port, 1, script)  # warm
            for _ in range(asked.rounds):
                for name, (process, port) in servers.items():
                    found[name].append(ask(process.pid, port, asked.seconds, script))
        finally:
            for process, _ in servers.values():
                process.terminate()
                process.wait()
    told = {
        name: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        for name, rounds in found.items()
    }
    for name in ("without log", "with log"):
        told[name]["of_hello_per_second"] = told[name]["per_second"] / told["hello"]["per_second"]
        told[name]["of_hello_processor"] = told["hello"]["processor_us"] / told[name]["processor_us"]
    result = {"median": told, "rounds": found}
    print(json.dumps(result, indent=1))
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(result, indent=1) + "\n")
        with asked.out.with_suffix(".csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table_of(result))


def table_of(result: dict[str, Any]) -> list[list[str]]:
    """The table for the documentation: medians, and the range of the rounds."""
    rows = [["", "requests a second", "of bare", "processor µs", "99th percentile, ms", "errors", "rounds"]]
    for name, median in result["median"].items():
        rounds = [one["per_second"] for one in result["rounds"][name]]
        share = median.get("of_hello_per_second")
        rows.append(
            [
                "bare endpoint" if name == "hello" else name,
                f"{median['per_second']:,.0f}",
                "" if share is None else f"{share:.2f}",
                f"{median['processor_us']:.0f}",
                f"{median['p99_ms']:.1f}",
                f"{sum(one['errors'] for one in result['rounds'][name]):.0f}",
                f"{min(rounds):,.0f} to {max(rounds):,.0f}",
            ]
        )
    return rows


if __name__ == "__main__":
    main()
