"""Commands with one word that is not what it should be: an option, a path, a number."""

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import typer

from fuzz import corpus
from fuzz.logs import make_log
from fuzz.mutators import Rng
from fuzz.outcomes import SilentDifferenceError
from fuzz.runs import make_run
from fuzz.tables import LOG
from towpath.cli.app import main
from towpath.cli.verbs import app_with
from towpath.errors import LONGEST_MESSAGE

SMALL = ("--set", "epochs=1", "--set", "embedding_dim=2")
WORLD = ("--set", "users=20", "--set", "items=15", "--set", "shown_per_user=4")
COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("fit",): ("events.csv", *SMALL, "--out", "OUT"),
    ("evaluate",): ("run",),
    ("compare",): ("events.csv", "--models", "mf,gmf", "--seeds", "1", *SMALL),
    ("sweep",): ("events.csv", "--setting", "l2", "--values", "0,1", "--seeds", "1", *SMALL, "--out", "OUT"),
    ("tune",): ("events.csv", "--grid", "l2=0,0.1", "--seeds", "1", *SMALL),
    ("report",): ("run", "--out", "OUT"),
    ("refit",): ("run", "--out", "OUT"),
    ("update",): ("run", "new.csv", "--out", "OUT"),
    ("export",): ("run", "--out", "OUT"),
    ("recommend",): ("run", "--user", "1"),
    ("similar",): ("run", "--item", "1"),
    ("diagnose",): ("run", "--out", "OUT"),
    ("ope",): ("log.csv", "--target", "uniform"),
    ("experiment",): ("served",),
    ("data", "inspect"): ("events.csv",),
    ("data", "prepare"): ("events.csv", "--out", "OUT"),
    ("simulate", "create"): (*WORLD, "--out", "OUT"),
    ("log", "export"): ("served", "--out", "OUT.parquet"),
}
NUMBERS = (
    "nan", "inf", "-inf", "1e300", "-1", "0", "9" * 30, "1e-300", "2147483648", "-9223372036854775809", "x",
    "", "0.5", "9223372036854775807",
)  # fmt: skip
TEXTS = (
    "", "\x01", "[" * 20_000, "☃", "a" * 5000, "../x", "=", "a=", "=1", "'; DROP TABLE x", "{", "%s%n",
    "user", "item", "1,2,,3", ":", ">=", "1e999", "epochs=1e999", "l2=" + "[" * 50_000, "mf=",
    "x.y=1", "mf.l2=nan",
)  # fmt: skip
PLACES = (
    "", "~nosuchuser/x", "pipe", "events.csv", "run", "served", "a" * 300,
    "nowhere/x/y", "x\ny", ".", "run/run.json", "run/split", "a[1].csv", "letters",
)  # fmt: skip
# Other processes are beyond this one, and what a page is given as a title is no input.
LEFT_OUT = {"help", "jobs", "engine", "device", "quiet", "json"}


class Commands:
    """Commands with one hostile word: done, or refused in one sentence with nothing left behind."""

    def __init__(self, folder: Path) -> None:
        self._home = folder / "home"
        self._home.mkdir()
        self._commands = {path: command for path, command in _leaves() if path in COMMANDS}
        lines = corpus.csv_lines(corpus.table())
        (self._home / "events.csv").write_bytes(corpus.lines(*lines))
        (self._home / "new.csv").write_bytes(corpus.lines(lines[0], *lines[1:9]))
        (self._home / "log.csv").write_bytes(corpus.lines(*corpus.csv_lines(LOG)))
        (self._home / "letters").mkdir()
        (self._home / "letters" / "one").write_text("dear")
        make_log(self._home / "served")
        make_run(self._home / "run", 0, 0)
        os.mkfifo(self._home / "pipe")

    def __call__(self, rng: Rng) -> str:
        work = self._home.with_name("work")
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self._home, work, ignore=shutil.ignore_patterns("pipe"))
        os.mkfifo(work / "pipe")
        words = self._words(rng)
        before = _names(work)
        with chdir(work), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err:
            code = main(words)
        return _judged(code, words, err.getvalue(), before, _names(work))

    def _words(self, rng: Rng) -> list[str]:
        path = list(COMMANDS)[rng.integers(len(COMMANDS))]
        words = list(COMMANDS[path])
        options = [
            one for one in self._commands[path].params if one.name not in LEFT_OUT and not _is_flag(one)
        ]
        chosen = options[rng.integers(len(options))]
        value = _value(chosen, rng)
        if chosen.param_type_name == "argument":
            words[0] = value
        else:
            flag = max(chosen.opts, key=len)
            if flag in words and not chosen.multiple:
                words[words.index(flag) + 1] = value
            else:
                words += [flag, value]
        return [*path, *(word.replace("OUT", "made") for word in words)]


def _judged(code: int, words: list[str], err: str, before: set[str], after: set[str]) -> str:
    """What became of a command; raises if it was a bug, talked too much or left something behind."""
    last = err.strip().rpartition("\n")[2]
    short = [word[:40] for word in words]
    assert code in (0, 2), f"{code} from {short}: {err[-1500:]}"
    assert "Traceback" not in err, f"{short}: {err[-1500:]}"
    if code == 0:
        return "read"
    assert len(last) <= LONGEST_MESSAGE + len("towpath: ") + 200, f"{short} says {len(last)} characters"
    if before != after:
        raise SilentDifferenceError(f"{short} refuses ({last[:200]}) and leaves {sorted(after ^ before)[:5]}")
    return "refused"


def _names(folder: Path) -> set[str]:
    """Every file and folder but those that SQLite keeps next to its own."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    return {name for name in names if not name.endswith(("-shm", "-wal"))}


def _leaves() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that name it."""
    open_: list[tuple[tuple[str, ...], Any]] = [((), typer.main.get_command(app_with()))]
    while open_:
        path, command = open_.pop()
        if hasattr(command, "commands"):
            open_ += [((*path, name), below) for name, below in command.commands.items()]
        else:
            yield path, command


def _is_flag(option: Any) -> bool:
    return option.param_type_name == "option" and bool(option.is_flag)


def _value(option: Any, rng: Rng) -> str:
    kind = str(option.bare_type).lower()
    if "int" in kind or "float" in kind:
        pool = NUMBERS
    elif "path" in kind or option.name in ("data", "run", "new", "log", "test"):
        pool = PLACES
    else:
        pool = (NUMBERS, TEXTS, TEXTS, PLACES)[rng.integers(4)]
    return pool[rng.integers(len(pool))]
