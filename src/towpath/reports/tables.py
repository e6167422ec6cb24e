"""Tables that read the same in a terminal, in Markdown and on a page, and lose nothing in CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A value and the range in which it is believed to lie."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Mean:
    """A mean and its standard deviation, where there is one; `place` 1 is the best of its column, 2 the next.

    Places beyond the second are not marked, nor is 0, which says nothing.
    """

    value: float
    sd: float | None = None
    place: int = 0


Cell = str | int | float | Interval | Mean
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

    def shown(self) -> list[list[str]]:
        """All cells as text for people."""
        return [[show(cell, self.decimals) for cell in row] for row in self.rows]

    def places(self) -> list[list[int]]:
        """The place of each cell in its column: 1 for the best, 2 for the next, 0 where nothing is marked."""
        return [[cell.place if isinstance(cell, Mean) else 0 for cell in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Which columns hold numbers, or nothing, and are set flush right."""
        return [
            bool(self.rows) and all(not isinstance(row[c], str) or row[c] == NOTHING for row in self.rows)
            for c in range(len(self.columns))
        ]


def show(cell: Cell, decimals: int) -> str:
    """A cell as people read it.

    >>> show(1204, 3), show(0.12345, 3), show(Interval(0.5, 0.41, 0.59), 2), show(Mean(0.5, 0.1), 2)
    ('1,204', '0.123', '0.50 (0.41 to 0.59)', '0.50 ± 0.10')
    """
    if isinstance(cell, Interval):
        value, low, high = (f"{float(x):,.{decimals}f}" for x in (cell.value, cell.low, cell.high))
        return f"{value} ({low} to {high})"
    if isinstance(cell, Mean):
        value = f"{cell.value:,.{decimals}f}"
        return value if cell.sd is None else f"{value} ± {cell.sd:,.{decimals}f}"
    if isinstance(cell, float):
        return f"{cell:,.{decimals}f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


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
    """What the numbers of a column have next to their value."""
    if any(isinstance(cell, Interval) for cell in cells):
        return ("low", "high")
    return ("sd",) if any(isinstance(cell, Mean) for cell in cells) else ()


def _parts(cell: Cell, further: Sequence[str]) -> list[str | int | float]:
    if isinstance(cell, str | int | float):
        return [cell, *("" for _ in further)]
    found = [getattr(cell, part, None) for part in further]
    return [cell.value, *("" if part is None else part for part in found)]
