"""What a person or a machine gets to see: results on standard output, everything else on standard error."""

import json as to_json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any, cast

import typer

from towpath.errors import printable


class Interrupted(Exception):  # noqa: N818  # nothing went wrong
    """The user pressed Ctrl-C; the message says what is left and how to go on."""


@dataclass(frozen=True)
class Output:
    """How results and progress are shown."""

    json: Annotated[
        bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")] = False

    def say(self, text: str) -> None:
        """A note on standard error, for people only."""
        if not (self.json or self.quiet):
            _console(stderr=True).print(printable(text), soft_wrap=True)

    def working(self, text: str) -> AbstractContextManager[object]:
        """A spinner on standard error while something takes its time."""
        if self.json or self.quiet:
            return nullcontext()
        return _console(stderr=True).status(text)

    @contextmanager
    def progress(self, title: str, total: int | None) -> Iterator[Callable[[str], None]]:
        """A bar on standard error; the function inside says what goes on and moves the bar one step.

        Where there is no terminal to draw on, each step is a line.
        """
        if self.json or self.quiet or not _console(stderr=True).is_terminal:
            yield self.say
            return
        from rich.progress import Progress

        with Progress(console=_console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=total)
            yield lambda text: bar.update(task, advance=1, description=text)

    @contextmanager
    def transfer(self, title: str) -> Iterator[Callable[[int, int | None], None]]:
        """A bar of bytes on standard error; the function inside takes how many are here, of how many."""
        if self.json or self.quiet or not _console(stderr=True).is_terminal:
            yield lambda here, total: None
            return
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

        columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=None)
            yield lambda here, total: bar.update(task, completed=here, total=total)

    def show(self, result: dict[str, Any], *tables: "Listing") -> None:
        """The result: the tables for people, the object (anything JSON can hold) for machines."""
        if self.json:
            typer.echo(json_text(result))
            return
        console = _console()
        # Written by typer, not by rich, which leaves with the code of a bug when nobody reads on.
        with console.capture() as shown:
            for listing in tables:
                console.print(listing.title, listing.table(), sep="\n", soft_wrap=True)
        typer.echo(shown.get(), nl=False)


@dataclass(frozen=True)
class Listing:
    """A table for people."""

    title: str
    columns: Sequence[str]
    rows: Iterable[Sequence[object]]

    def table(self) -> Any:  # a rich Table; rich is imported only when something is shown
        """The table as rich draws it; numbers to the right, fractions with four places."""
        from rich import box
        from rich.table import Table

        rows = [list(row) for row in self.rows]
        table = Table(box=box.SIMPLE_HEAD, show_header=any(self.columns), show_edge=False, pad_edge=False)
        for place, name in enumerate(self.columns):
            numeric = all(isinstance(row[place], int | float) for row in rows)
            # A name or an address that is cut off is of no use: names stay whole, the rest goes on below.
            table.add_column(
                name, justify="right" if numeric else "left", no_wrap=place == 0, overflow="fold"
            )
        for row in rows:
            table.add_row(*map(_shown, row))
        return table

    def markdown(self) -> str:
        """The same for a file."""
        from towpath.reports.tables import Table, to_markdown

        cells = tuple(tuple("" if cell is None else cast(Any, cell) for cell in row) for row in self.rows)
        return f"{self.title}\n\n{to_markdown(Table(tuple(self.columns), cells, decimals=4))}\n"


def stopped(folder: object) -> str:
    """What is said after Ctrl-C where results are stored."""
    return f"Stopped; finished results are in {folder}. To resume, run the same command again."


def json_text(result: dict[str, Any]) -> str:
    """A result as machines get it, on one line."""
    return to_json.dumps(_plain(result), ensure_ascii=False, default=str)


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _plain(value: Any) -> Any:  # any JSON in, any JSON out
    """The same with None for numbers that JSON has no form for."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _console(*, stderr: bool = False) -> Any:  # a rich Console
    from rich.console import Console

    # Ids and messages are shown as they are: square brackets in them are no markup.
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)
