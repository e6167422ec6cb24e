"""python -m fuzz --inputs 100000 --seed 0 --out fuzz/summary.md: damaged inputs, and what became of them.

Inputs are numbered; each has a generator of its own, so that `--only TARGET --from N --inputs 1` repeats one.
They run in processes that are forked after the imports: one that crashes is counted, and the next goes on.
With `--kept FILE` finished pieces are kept there, and the same command goes on after them.
"""

import argparse
import hashlib
import json
import multiprocessing
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import towpath
from fuzz.lent_engine import lent_engine
from fuzz.outcomes import SilentDifferenceError
from fuzz.targets import TARGETS

CHUNK = 100


@dataclass
class Found:
    """What became of the inputs of one target."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


def attack(target, name: str, numbers: range, seed: int, answers) -> None:  # type: ignore[no-untyped-def]
    """Attack one target with the inputs of these numbers; what became of each is put into the queue."""
    for number in numbers:
        answers.put((number, *one(target, name, number, seed)))


def one(target: object, name: str, number: int, seed: int) -> tuple[str, str]:
    """What became of one input, and the traceback if it was not handled."""
    rng = np.random.default_rng([seed, list(TARGETS).index(name), number])
    try:
        return target(rng), ""  # type: ignore[operator]
    except SilentDifferenceError as error:
        return "silent difference", str(error)[:500]
    except Exception:
        return "traceback", traceback.format_exc()[-3000:]


class Kept:
    """Pieces of a run that are finished, one JSON line each; those of other code or seeds do not count."""

    def __init__(self, path: Path | None, seed: int) -> None:
        self._path, self._about = path, {"code": code_of(), "seed": seed}
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        pieces = [json.loads(line) for line in lines]
        self._found = {
            (one["target"], one["from"], one["to"]): Found(
                Counter(one["outcomes"]), one["failures"], one["seconds"]
            )
            for one in pieces
            if {key: one[key] for key in self._about} == self._about
        }

    def get(self, name: str, numbers: range) -> Found | None:
        """What became of these inputs, if it is known."""
        return self._found.get((name, numbers.start, numbers.stop))

    def add(self, name: str, numbers: range, found: Found) -> None:
        """Keep what became of these inputs."""
        if self._path is None:
            return
        piece = {"target": name, "from": numbers.start, "to": numbers.stop, **vars(found)}
        with self._path.open("a") as file:
            file.write(json.dumps(self._about | piece) + "\n")


def code_of() -> str:
    """A digest of the code that is attacked and of what attacks it."""
    places = [Path(towpath.__file__).parent, Path(__file__).parent]
    digest = hashlib.sha256()
    for path in sorted(path for place in places for path in place.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def run(name: str, count: int, start: int, seed: int, kept: Kept) -> Found:
    """What became of so many inputs of one target."""
    whole = Found()
    ends = range(start, start + count, CHUNK)
    pieces = [range(at, min(at + CHUNK, start + count)) for at in ends]
    missing = [piece for piece in pieces if kept.get(name, piece) is None]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        target = TARGETS[name][0](Path(folder)) if missing else None
        for numbers in pieces:
            found = kept.get(name, numbers)
            if found is None:
                found = _piece(target, name, numbers, seed)
                kept.add(name, numbers, found)
            whole.outcomes += found.outcomes
            whole.failures += found.failures
            whole.seconds += found.seconds
        if hasattr(target, "close"):
            target.close()
    return whole


def _piece(target: object, name: str, numbers: range, seed: int) -> Found:
    """What became of these inputs; after a crash another process goes on with the next one."""
    found, began = Found(), time.monotonic()
    context = multiprocessing.get_context("fork")
    at = numbers.start
    while at < numbers.stop:
        answers = context.SimpleQueue()
        left = range(at, numbers.stop)
        process = context.Process(target=attack, args=(target, name, left, seed, answers))
        process.start()
        at = _collect(found, answers, process, left)
        process.join()
    found.seconds = time.monotonic() - began
    return found


def _collect(found: Found, answers, process, numbers: range) -> int:  # type: ignore[no-untyped-def]
    """The number to go on with, once the process has answered for all its numbers or has died."""
    at = numbers.start
    while at < numbers.stop:
        while answers.empty() and process.is_alive():
            time.sleep(0.001)
        if answers.empty():
            found.outcomes["crash"] += 1
            found.failures.append(f"input {at}: the process died with {process.exitcode}")
            return at + 1
        number, outcome, detail = answers.get()
        found.outcomes[outcome] += 1
        if detail:
            found.failures.append(f"input {number}: {outcome}\n{detail}")
        at = number + 1
    return at


def summary(results: dict[str, Found], arguments: argparse.Namespace) -> str:
    """The table that is committed."""
    kinds = ["same", "read", "refused", "traceback", "silent difference", "crash"]
    total = Counter[str]()
    rows = []
    for name, found in results.items():
        total += found.outcomes
        counts = " | ".join(f"{found.outcomes[kind]:,}" for kind in kinds)
        rows.append(f"| {name} | {found.outcomes.total():,} | {counts} | {found.seconds:,.0f} |")
    seconds = sum(found.seconds for found in results.values())
    counts = " | ".join(f"{total[kind]:,}" for kind in kinds)
    rows.append(f"| all | {total.total():,} | {counts} | {seconds:,.0f} |")
    return "\n".join(
        [
            "# The last long run of the fuzzer",
            "",
            f"    python -m fuzz --inputs {arguments.inputs} --seed {arguments.seed}",
            "",
            "“same”: the answer of the undamaged input; “read”: accepted, with every row accounted for.",
            "",
            f"| target | inputs | {' | '.join(kinds)} | seconds |",
            "|---|" + "---:|" * (len(kinds) + 2),
            *rows,
            "",
        ]
    )


def main() -> int:
    """Attack all targets; 1 if an input was not handled."""
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="start", type=int, default=0)
    parser.add_argument("--only", choices=list(TARGETS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--kept", type=Path, help="finished pieces, from which the same command goes on")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results, kept = {}, Kept(arguments.kept, arguments.seed)
    for name, (_, share) in TARGETS.items():
        if arguments.only not in (None, name):
            continue
        count = arguments.inputs if arguments.only else arguments.inputs * share // 1000
        with lent_engine():
            results[name] = run(name, count, arguments.start, arguments.seed, kept)
        print(name, dict(results[name].outcomes), f"{results[name].seconds:.0f} s", flush=True)
        for failure in results[name].failures[:20]:
            print(failure, flush=True)
    text = summary(results, arguments)
    print(text)
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    bad = sum(len(found.failures) for found in results.values())
    print(json.dumps({"not handled": bad}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
