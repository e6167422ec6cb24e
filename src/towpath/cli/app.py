"""The command line as a program: the one place where errors become sentences and exit codes.

0 done; 2 what was asked for cannot be, with one sentence on standard error; 1 a bug, with its traceback;
130 stopped by Ctrl-C; 141 the program that read the output went away; 143 stopped by SIGTERM.
"""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from threading import current_thread, main_thread
from typing import Any

import typer

from towpath.boundary import is_out_of_memory
from towpath.cli.output import Interrupted
from towpath.cli.verbs import app_with
from towpath.errors import TowpathError, printable, shortened

DONE, BUG, CANNOT, STOPPED, NOBODY_READS, TERMINATED = 0, 1, 2, 130, 141, 143

# What the machine, not the program, is to blame for.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CIRCUMSTANCES = _FULL | {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EIO,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one command; called with the program's own arguments unless others are given."""
    given = list(sys.argv[1:] if arguments is None else arguments)

    def run() -> None:
        command = typer.main.get_command(app_with(given[0] if given else None))
        # Not command.main(): it shows usage errors in its own way and gives broken pipes the code of a bug.
        with command.make_context("towpath", given or ["--help"]) as context:
            command.invoke(context)
        sys.stdout.flush()

    with _sigterm_heard() as was_terminated:
        # What a command sets for itself, such as a limit of memory, ends with it.
        code = report_errors(lambda: copy_context().run(run))
    return TERMINATED if was_terminated() and code == STOPPED else code


@contextmanager
def _sigterm_heard() -> Iterator[Callable[[], bool]]:
    """A block in which SIGTERM stops the work as Ctrl-C does, leaving nothing half-made; was it so?"""
    heard: list[int] = []

    def stop(number: int, frame: object) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    if current_thread() is not main_thread():  # where signals cannot be set
        yield lambda: False
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield lambda: bool(heard)
    finally:
        signal.signal(signal.SIGTERM, before)


def report_errors(run: Callable[[], None]) -> int:
    """The exit code of what is run; what went wrong is said on standard error."""
    try:
        run()
    except typer.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, Interrupted) as stopped:
        return _say(str(stopped) or "Stopped.", STOPPED)
    except BrokenPipeError:
        # Python flushes once more on its way out; give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except TowpathError as error:
        return _say(str(error), CANNOT)
    except Exception as error:
        return _sentence_or_bug(error)
    return DONE


def _sentence_or_bug(error: Exception) -> int:
    """The exit code of an error that is not Towpath's own: wrong usage, circumstances or a bug."""
    if hasattr(
        error, "format_message"
    ):  # typer's usage errors; where their class lives depends on its version
        return _say(_usage_sentence(error), CANNOT)
    if isinstance(error, OSError) and error.errno in _CIRCUMSTANCES:
        where = f" {error.filename}" if error.filename else ""
        why = (error.strerror or str(error)).lower()
        what = "free some space" if error.errno in _FULL else "choose another place"
        return _say(f"Cannot use{where}: {why}; {what} and try again.", CANNOT)
    if is_out_of_memory(error):
        return _say("There is not enough memory for that; use a smaller model or less data.", CANNOT)
    traceback.print_exception(error)
    return _say("This is a bug in Towpath; please report it with the lines above.", BUG)


def _usage_sentence(error: Any) -> str:  # typer's own class, see above
    """What was wrong with the command, what was probably meant, and where to look."""
    message = error.message if hasattr(error, "possibilities") else error.format_message()
    near = (getattr(error, "possibilities", None) or [None])[0]
    hint = f"; did you mean {near}?" if near else "" if message.endswith("?") else "."
    where = error.ctx.command_path if getattr(error, "ctx", None) else "towpath"
    return f"{message.rstrip('.')}{hint} See {where} --help."


def _say(sentence: str, code: int) -> int:
    print(f"towpath: {shortened(printable(' '.join(sentence.split())))}", file=sys.stderr)
    return code
