"""python -m fuzz.kills --kills 100 --seed 0 --out fuzz/kills.md: commands killed at random moments.

Each command is started in a process that is forked after the imports, killed with SIGKILL or SIGTERM at a
random moment, and then run again to its end (with --resume where it has one). What must hold: the second run
ends well, its result is that of an undisturbed run, and nothing half-made or temporary is left.
"""

import argparse
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import kill_serve
from fuzz.runs import make_run
from towpath.cli.app import main as towpath
from towpath.errors import TowpathError
from towpath.experiments.paper.benchmarks import BENCHMARKS, BenchmarkSpec
from towpath.experiments.paper.catalogue import EXPERIMENTS
from towpath.experiments.paper.experiment import Experiment
from towpath.methods.recipe import Recipe

# Numbers that clocks make differ between equal runs.
CLOCKS = ("seconds", "hours", "folder", "run", "out", "page", "path", "artifact", "log", "command", "file")


@dataclass(frozen=True)
class Command:
    """A command that writes to OUT, and the words that make it go on after a kill."""

    words: tuple[str, ...]
    again: tuple[str, ...] = ()
    last: str = ""  # the file that it writes last; a folder that is there must have it, and is made once only


FIT = ("--set", "epochs=4", "--set", "patience=9", "--set", "embedding_dim=4")
WORLD = ("--set", "users=60", "--set", "items=40", "--set", "shown_per_user=10")
COMMANDS = {
    "fit": Command(("fit", "EVENTS", *FIT, "--out", "OUT"), ("--resume",)),
    "tune": Command(("tune", "EVENTS", "--grid", "l2=0,0.01", "--seeds", "1", *FIT, "--out", "OUT")),
    "compare": Command(("compare", "EVENTS", "--models", "mf,gmf", "--seeds", "1", *FIT, "--out", "OUT")),
    "simulate": Command(("simulate", "create", *WORLD, "--out", "OUT")),
    "simulate serve": Command(
        ("simulate", "serve", "WORLD", "--arms", "plain,ipw", "--days", "2", "-k", "3", *FIT, "--out", "OUT"),
        last="experiment.html",
    ),
    "paper": Command(("paper", "run", "kills", "--seeds", "1", "--code", "as it is", "--out", "OUT")),
    "log export": Command(("log", "export", "LOG", "--out", "OUT.parquet")),
}
SERVE = "serve"  # killed in its own way
NAMES = (*COMMANDS, SERVE)


def answer(words: tuple[str, ...], places: dict[str, Path]) -> tuple[int, Any]:
    """The exit code and the JSON of one command, in this process."""
    filled = [_filled(word, places) for word in words]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = towpath([*filled, "--json"])
    if code:
        return code, err.getvalue()
    return code, _steady(json.loads(out.getvalue()))


def _filled(word: str, places: dict[str, Path]) -> str:
    for name, path in places.items():
        word = word.replace(name, str(path))
    return word


def _steady(value: Any) -> Any:
    """The JSON without what clocks and places make differ."""
    if isinstance(value, dict):
        return {k: _steady(v) for k, v in value.items() if not any(word in k for word in CLOCKS)}
    if isinstance(value, list):
        return [_steady(one) for one in value]
    return value


def forked(action: Callable[[], None]) -> int:
    """The id of a process that does this and leaves."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        action()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def kill_once(command: Command, places: dict[str, Path], rng: np.random.Generator, longest: float) -> str:
    """What happened to the killed process; the second run is checked by the caller."""
    process = forked(lambda: sys.exit(answer(command.words, places)[0]))
    wait = float(rng.random()) * longest
    number = signal.SIGKILL if rng.random() < 0.7 else signal.SIGTERM
    ended = time.monotonic() + wait
    while time.monotonic() < ended:
        if os.waitpid(process, os.WNOHANG)[0]:
            return "finished before"
        time.sleep(0.002)
    os.kill(process, number)
    os.waitpid(process, 0)
    return "killed" if number == signal.SIGKILL else "terminated"


def attack(name: str, rng: np.random.Generator, places: dict[str, Path], right: Any, longest: float) -> str:
    """Kill a command once and run it again; raises if the second run is not as an undisturbed one."""
    places["OUT"].parent.mkdir()
    if name == SERVE:
        return kill_serve.attack(_started, (places["RUN0"], places["RUN1"]), places["OUT"], rng)
    command = COMMANDS[name]
    how = kill_once(command, places, rng, longest)
    if command.last and places["OUT"].exists():
        assert (places["OUT"] / command.last).is_file(), f"{name} after {how} is half-made"
        shutil.rmtree(places["OUT"])
    begun = command.again and (places["OUT"] / "run.json").is_file()
    code, found = answer((*command.words, *(command.again if begun else ())), places)
    assert code == 0, f"{name} after {how}: {found}"
    assert found == right, f"{name} after {how}: {found} instead of {right}"
    left = [path.name for path in places["OUT"].parent.rglob("*") if _is_litter(path.name)]
    assert not left, f"{name} after {how} leaves {left}"
    return how


def _started(words: tuple[str, ...]) -> int:
    """The id of a process that runs this command and says nothing."""

    def run() -> None:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            sys.exit(towpath(list(words)))

    return forked(run)


def _is_litter(name: str) -> bool:
    return name.endswith((".partial", ".old", ".writing"))


def make_places(folder: Path) -> dict[str, Path]:
    """The data that the commands work on: events, and a small exposure log."""
    places = {
        "EVENTS": _write_events(folder / "events.csv", items=30),
        "LOG": _make_log(folder / "log"),
        "WORLD": folder / "world",
    }
    assert answer(COMMANDS["simulate"].words, {"OUT": places["WORLD"]})[0] == 0
    for number in (0, 1):
        places[f"RUN{number}"] = folder / f"run{number}"
        make_run(places[f"RUN{number}"], number, 0)
    _register_table(_write_events(folder / "more.csv", items=200))  # sampled evaluation needs 100 others
    return places


def _write_events(path: Path, items: int) -> Path:
    """Sixty users with eight events each."""
    rng = np.random.default_rng(0)
    pairs = [(user, item) for user in range(60) for item in rng.permutation(items)[:8]]
    rows = [f"{user},{item},{time}" for time, (user, item) in enumerate(pairs)]
    path.write_text("\n".join(["user,item,time", *rows]) + "\n")
    return path


def _register_table(events: Path) -> None:
    """A table of the paper's kind that takes a second."""
    fast = {"epochs": 3, "embedding_dim": 4, "batch_size": 256}
    BENCHMARKS["kills"] = BenchmarkSpec("Kills", str(events), note="Made to be killed.")
    EXPERIMENTS["kills"] = Experiment(
        name="kills",
        title="A table to kill",
        about="A table to kill.",
        benchmarks=("kills",),
        methods={"Pop": Recipe("popularity"), "MCF": Recipe("mf", settings=fast)},
        claims=(),
        seeds=1,
    )


def _make_log(path: Path) -> Path:
    from towpath.serving.exposure_log.sqlite import SqliteStore
    from towpath.serving.exposure_log.tables import RequestRow

    store = SqliteStore(path / "exposures-0.sqlite")
    slate = ("[1, 2, 3]", "[0.3, 0.2, 0.1]", "[0.5, 0.3, 0.2]")
    store.write(
        [RequestRow(f"r{n}", n, f"{n % 50}", "recommend", None, "a", "v", 0, *slate) for n in range(500)]
    )
    store.close()
    return path


def measured(name: str, folder: Path, places: dict[str, Path]) -> tuple[Any, float]:
    """What an undisturbed run gives, and how long it takes once everything is imported."""
    if name == SERVE:
        return None, 0.0
    for attempt in ("imports", "timed"):
        began = time.monotonic()
        code, right = answer(COMMANDS[name].words, {**places, "OUT": folder / attempt / name / "out"})
        assert code == 0, right
    return right, time.monotonic() - began


def main() -> int:
    """Kill every command in turn until there are enough kills; 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.kills")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    counts: dict[str, Counter[str]] = {name: Counter() for name in NAMES}
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kills-") as scratch:
        folder = Path(scratch)
        places = make_places(folder)
        right = {name: measured(name, folder, places) for name in NAMES}
        for number in range(arguments.kills * 2):
            name = NAMES[number % len(NAMES)]
            here = folder / f"{number}"
            rng = np.random.default_rng([arguments.seed, number])
            try:
                how = attack(name, rng, {**places, "OUT": here / "out"}, *right[name])
            except (AssertionError, TowpathError) as error:
                how = "failed"
                failures.append(str(error)[:800])
            counts[name][how] += 1
            if sum(c["killed"] + c["terminated"] + c["failed"] for c in counts.values()) >= arguments.kills:
                break
    text = summary(counts, arguments)
    print(text, *failures[:10], sep="\n")
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if failures else 0


def summary(counts: dict[str, Counter[str]], arguments: argparse.Namespace) -> str:
    """The table that is committed."""
    kinds = ("killed", "terminated", "finished before", "failed")
    rows = [f"| {name} | {' | '.join(str(c[kind]) for kind in kinds)} |" for name, c in counts.items()]
    return "\n".join(
        [
            "# The last long run of kills",
            "",
            f"    python -m fuzz.kills --kills {arguments.kills} --seed {arguments.seed}",
            "",
            "“killed” by SIGKILL, “terminated” by SIGTERM: the same command then ended with the result of an",
            "undisturbed run and left nothing half-made. A server was started again on its log, which then",
            "held every answer and every click that a client had been told of, once. “failed”: it did not.",
            "",
            f"| command | {' | '.join(kinds)} |",
            "|---|---:|---:|---:|---:|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
