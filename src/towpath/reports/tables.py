"""Tables for terminals, Markdown, pages and LaTeX; CSV keeps full precision."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from towpath.stats.estimate import Estimate
from towpath.stats.spread import deviation_of


@dataclass(frozen=True)
class Ranked:
    """An estimate that is marked in its column: place 1 is the best, 2 the second best, 0 is not marked."""

    estimate: Estimate
    place: int = 0


Cell = str | int | float | Estimate | Ranked
NOTHING = "—"  # where there is no number
# How the best and the second best of a column are set in Markdown; pages and LaTeX have bold and underlines.
_MARKS = {1: "**", 2: "_"}


@dataclass(frozen=True)
class Table:
    """Named columns and rows of cells; numbers stay numbers until they are shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    decimals: int = 3

    def __post_init__(self) -> None:
        """A row of another length would shift its cells under the wrong names."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a table of {len(self.columns)} columns got a row of {len(row)}: {row!r}")

    @property
    def full_caption(self) -> str:
        """The caption, and how each kind of interval in the table was made, unless the caption says so."""
        estimates = [e for row in self.rows for cell in row if (e := estimate_in(cell)) is not None]
        ways = dict.fromkeys(e.how for e in estimates if e.width > 0)
        notes = [f"{how[:1].upper()}{how[1:]}." for how in ways if how and how not in self.caption]
        return " ".join([*([self.caption] if self.caption else []), *notes])

    def shown(self) -> list[list[str]]:
        """All cells as text for people."""
        return [[show(cell, self.decimals) for cell in row] for row in self.rows]

    def places(self) -> list[list[int]]:
        """The place of each cell in its column: 1 for the best, 2 for the next, 0 where nothing is marked."""
        return [[cell.place if isinstance(cell, Ranked) else 0 for cell in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Which columns hold numbers, or nothing, and are set flush right."""
        return [
            bool(self.rows) and all(not isinstance(row[c], str) or row[c] == NOTHING for row in self.rows)
            for c in range(len(self.columns))
        ]


def show(cell: Cell, decimals: int) -> str:
    """A cell as people read it.

    >>> show(1204, 3), show(0.12345, 3), show(Estimate(0.5, 0.41, 0.59, 100, "by hand"), 2)
    ('1,204', '0.123', '0.50 (0.41 to 0.59)')
    >>> from towpath.stats.spread import mean_and_deviation
    >>> show(mean_and_deviation(0.5, 0.1, n=3), 2), show(mean_and_deviation(0.5, None, n=1), 2)
    ('0.50 ± 0.10', '0.50')
    """
    if isinstance(cell, Estimate | Ranked):
        return _show_estimate(cell.estimate if isinstance(cell, Ranked) else cell, decimals)
    if isinstance(cell, float):
        return f"{cell:,.{decimals}f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def estimate_in(cell: Cell) -> Estimate | None:
    """The estimate that a cell shows, if it shows one."""
    estimate = cell.estimate if isinstance(cell, Ranked) else cell
    return estimate if isinstance(estimate, Estimate) else None


def _show_estimate(estimate: Estimate, decimals: int) -> str:
    mean, low, high = (f"{x:,.{decimals}f}" for x in (estimate.mean, estimate.low, estimate.high))
    sd = deviation_of(estimate)
    if sd is not None:
        return f"{mean} ± {sd:,.{decimals}f}"
    return mean if estimate.n <= 1 else f"{mean} ({low} to {high})"


def to_markdown(table: Table) -> str:
    """The table in GitHub's Markdown, columns aligned in the source as well.

    >>> print(to_markdown(Table(("model", "hit"), (("mf", 0.25), ("ease", 0.5)), decimals=2)))
    | model |  hit |
    |:------|-----:|
    | mf    | 0.25 |
    | ease  | 0.50 |
    """
    marked = [
        [f"{_MARKS.get(place, '')}{text}{_MARKS.get(place, '')}" for text, place in zip(*row, strict=True)]
        for row in zip(table.shown(), table.places(), strict=True)
    ]
    cells = [[text.replace("|", "\\|") for text in row] for row in [list(table.columns), *marked]]
    widths = [max(3, *(len(row[c]) for row in cells)) for c in range(len(table.columns))]
    right = table.numeric()
    rule = ["-" * (w + 1) + ":" if r else ":" + "-" * (w + 1) for w, r in zip(widths, right, strict=True)]
    lines = [_line(row, widths, right) for row in cells]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:]])


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = [
        text.rjust(w) if flush else text.ljust(w) for text, w, flush in zip(row, widths, right, strict=True)
    ]
    return f"| {' | '.join(cells)} |"


def to_csv(table: Table) -> str:
    """The table as CSV in full precision; an interval takes three columns, a mean with its spread two."""
    more = [_more([row[c] for row in table.rows]) for c in range(len(table.columns))]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        name
        for column, further in zip(table.columns, more, strict=True)
        for name in (column, *(f"{column} {part}" for part in further))
    )
    for row in table.rows:
        writer.writerow(
            part for cell, further in zip(row, more, strict=True) for part in _parts(cell, further)
        )
    return out.getvalue()


def _more(cells: Sequence[Cell]) -> tuple[str, ...]:
    """The further CSV columns of a column: the ends of its intervals, or its standard deviations."""
    estimates = [e for cell in cells if (e := estimate_in(cell)) is not None]
    if not estimates:
        return ()
    single = all(e.n <= 1 or deviation_of(e) is not None for e in estimates)
    return ("sd",) if single else ("low", "high")


def _parts(cell: Cell, further: Sequence[str]) -> list[str | int | float]:
    estimate = estimate_in(cell)
    if isinstance(cell, str | int | float) or estimate is None:
        return [cell if isinstance(cell, str | int | float) else "", *("" for _ in further)]
    if further == ("sd",):
        sd = deviation_of(estimate)
        return [estimate.mean, "" if sd is None else sd]
    return [estimate.mean, estimate.low, estimate.high]
