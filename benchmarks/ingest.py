"""Seconds and peak memory of reading, cleaning, encoding and splitting 20 million events with string ids.

    python -m benchmarks.ingest [--events 20000000] [--most-seconds 20] [--most-gigabytes 1.5] [--polars]

The file is made in a temporary folder and removed; each measurement is a process of its own. With --polars,
Polars (in the environment that `benchmarks.peer_environments` makes) does the same to the same file by two
plans, which have to find the same rows, users, items and test rows.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.peer_environments import interpreter

POLARS_PLANS = ("codes", "strings")
MAKE_EVENTS = """
    COPY (
        SELECT printf('user-%07d', CAST(floor(500000 * power(random(), 1.5)) AS INTEGER)) AS user_id,
            printf('item-%06d', CAST(floor(100000 * power(random(), 2)) AS INTEGER)) AS item_id,
            1500000000 + CAST(random() * 100000000 AS BIGINT) AS timestamp,
            CAST(1 + floor(random() * 5) AS FLOAT) AS rating
        FROM range({events})
    ) TO '{path}'"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--most-seconds", type=float, default=20.0)
    parser.add_argument("--most-gigabytes", type=float, default=1.5)
    parser.add_argument("--polars", action="store_true", help="also Polars, on the same file")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        make_events(path, options.events)
        command = [sys.executable, "-m", "benchmarks.ingest", "--measure", str(path)]
        found = asked(command)
        others = by_polars(path) if options.polars else {}
    print(json.dumps({"towpath": found} | others, indent=2) if others else json.dumps(found, indent=2))
    for name, other in others.items():
        if any(other[key] != found[key] for key in ("rows", "users", "items", "test")):
            sys.exit(f"{name} found other data")
    if found["seconds"] > options.most_seconds or found["peak_gigabytes"] > options.most_gigabytes:
        sys.exit(f"over the budget of {options.most_seconds:g} s and {options.most_gigabytes:g} GB")


def asked(command: list[str]) -> dict[str, float]:
    """What a process answers in JSON."""
    answer: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return answer


def by_polars(path: Path) -> dict[str, dict[str, float]]:
    """What both plans of Polars take."""
    python, script = interpreter("polars"), Path(__file__).with_name("peer_polars.py")
    if python is None:
        sys.exit("Polars is missing: python -m benchmarks.peer_environments polars")
    return {f"polars, {plan}": asked([str(python), str(script), str(path), plan]) for plan in POLARS_PLANS}


def make_events(path: Path, events: int) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SELECT setseed(0.5)")
        connection.execute("SET threads = 1")  # several threads would draw in another order each time
        connection.execute(MAKE_EVENTS.format(events=events, path=path))


def measure(path: Path) -> dict[str, float]:
    from towpath.data.cleaning import Cleaning
    from towpath.data.sources import read
    from towpath.data.split import split_leave_last_two

    start = time.perf_counter()
    reading = read(str(path), cleaning=Cleaning(repeats="first", min_per_item=5, min_per_user=5))
    read_seconds = time.perf_counter() - start
    split = split_leave_last_two(reading.interactions)
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "rows": len(reading.interactions),
        "users": reading.interactions.n_users,
        "items": reading.interactions.n_items,
        "test": len(split.test),
        "read_seconds": round(read_seconds, 2),
        "split_seconds": round(seconds - read_seconds, 2),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_gigabytes": round(usage.ru_maxrss * 1024 / 1e9, 3),
    }


if __name__ == "__main__":
    main()
