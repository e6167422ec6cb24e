"""Peak memory of fitting and evaluating large data, and how it grows with them: one table.

    python -m benchmarks.memory [--only events items ...] [--data-dir DIR] [--scale 1]

Each case is a `towpath` command in a process of its own, run twice: on a quarter of the data and on all. The
peak includes child processes. "Over the imports" is what is above the same command on a hundred events, which
takes libraries and compiled loops alone. Growth is the difference of the two sizes, per event.
"""

import argparse
import json
import platform
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from benchmarks.peak_memory import TOWPATH, Measured, measure

# Users have equally many events; every item occurs, and some are far more popular than others. With a `heavy`
# user, user 0 has one event with every item first.
MAKE_EVENTS = """
    COPY (
        SELECT CASE WHEN i < {heavy} THEN 0 ELSE 1 + CAST(floor({users} * random()) AS INTEGER) END
                AS user_id,
            CASE WHEN i < {items} THEN i ELSE CAST(floor({items} * power(random(), 2)) AS INTEGER) END
                AS item_id,
            1500000000 + CAST(random() * 100000000 AS BIGINT) AS timestamp
        FROM range({events}) AS events(i)
    ) TO '{path}'"""


@dataclass(frozen=True)
class Case:
    """Data of some size, and what is asked of them."""

    title: str
    users: int
    items: int
    events: int
    heavy: int = 0  # events of the first user
    evaluate: bool = False  # measured is the full ranking, not the fit before it
    epochs: int = 1
    most: float | None = None  # megabytes that are wanted
    options: tuple[str, ...] = ()

    def scaled(self, by: float) -> "Case":
        """The same with less of everything but users."""
        sizes = {name: max(100, round(getattr(self, name) * by)) for name in ("items", "events")}
        return replace(self, **sizes, heavy=round(self.heavy * by))


CASES = {
    "events": Case("5 million events, 100,000 items: fit", 10_000, 100_000, 5_000_000, most=1000),
    "limited": Case(
        "the same with --memory 950MB", 10_000, 100_000, 5_000_000, most=950, options=("--memory", "950MB")
    ),
    "items": Case("2 million items, 5 million events: fit", 1_000, 2_000_000, 5_000_000, most=3000),
    "user": Case("a user with a million events: fit", 1_000, 1_000_000, 3_000_000, heavy=1_000_000),
    "ranking": Case("full ranking of 200,000 items", 5_000, 200_000, 2_000_000, evaluate=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=[*CASES, "ml-1m"], default=[*CASES, "ml-1m"])
    parser.add_argument("--data-dir", type=Path, help="where ml-1m lies; without it that row is left out")
    parser.add_argument("--scale", type=float, default=1.0, help="a share of every size, to try it out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # Twice: the first may compile loops, which takes memory of its own.
        imports = [_Runner(Path(folder)).run(Case("", 20, 20, 100)).megabytes for _ in range(2)][-1]
        rows = [
            _row(CASES[n].scaled(options.scale), imports, Path(folder)) for n in options.only if n in CASES
        ]
        if "ml-1m" in options.only and options.data_dir:
            rows.append(_movielens(options.data_dir, imports, Path(folder)))
    print(json.dumps({"imports_megabytes": imports, "machine": platform.platform(), "rows": rows}))
    over = [row["case"] for row in rows if row["wanted"] is not None and row["peak"] > row["wanted"]]
    if over:
        sys.exit(f"over what is wanted: {'; '.join(over)}")


def _row(case: Case, imports: int, folder: Path) -> dict[str, float | str | None]:
    runner = _Runner(folder)
    small, whole = runner.run(case.scaled(0.25)), runner.run(case)
    grown = round((whole.peak - small.peak) / (0.75 * case.events))
    return _report(case.title, whole, imports, case.most) | {"growth_bytes_per_event": grown}


def _movielens(data_dir: Path, imports: int, folder: Path) -> dict[str, float | str | None]:
    command = (*TOWPATH, "fit", "ml-1m", "--data-dir", str(data_dir), "--set", "epochs=5", "--quiet")
    measured = measure((*command, "--out", str(folder / "ml-1m")))
    return _report("MovieLens 1M: fit", measured, imports, imports + 300)


def _report(title: str, found: Measured, imports: int, most: float | None) -> dict[str, float | str | None]:
    row: dict[str, float | str | None] = {
        "case": title,
        "peak": found.megabytes,
        "over_imports": found.megabytes - imports,
        "wanted": most,
        "cpu_seconds": round(found.cpu_seconds),
    }
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


class _Runner:
    """Runs cases in a folder, one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, case: Case) -> Measured:
        """What the command of this case took."""
        place = Path(tempfile.mkdtemp(dir=self._folder))
        data, run = place / "events.parquet", place / "run"
        make_events(case, data)
        fit = ["fit", str(data), "--model", "mf", "--out", str(run), "--set", f"epochs={case.epochs}"]
        measured = measure([*TOWPATH, *fit, *case.options, "--quiet"])
        if case.evaluate:
            measured = measure([*TOWPATH, "evaluate", str(run), "--protocol", "full", "--quiet"])
        return measured


def make_events(case: Case, path: Path) -> None:
    """The events of a case as a Parquet file."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SELECT setseed(0.5)")
        connection.execute("SET threads = 1")  # several threads would draw in another order each time
        sizes = {"users": case.users, "items": case.items, "events": case.events, "heavy": case.heavy}
        connection.execute(MAKE_EVENTS.format(path=path, **sizes))


if __name__ == "__main__":
    main()
