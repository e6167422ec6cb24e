"""The tables of the result pages, written from the committed files of results.

    python docs/tables.py        (or: make reference)

A page says where a table comes from in a comment before it, and nobody types its numbers:

    <!-- table: table-1-ml-1m/results.json -->        a file in docs/results
    <!-- columns: Hit@10 (full); NDCG@10 (full) -->   some columns, next to the first; without it all
    <!-- rows: MCF; DT-MCF -->                        some rows, in this order; without it all

Of a results.json the table has mean ± standard deviation over its seeds. A test compares every page with its
files.
"""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

DOCS = Path(__file__).parent
RESULTS = DOCS / "results"
_MARKED = re.compile(
    r"(?P<marks><!-- table: (?P<file>[^\n]+) -->\n"
    r"(?:<!-- columns: (?P<columns>[^\n]+) -->\n)?(?:<!-- rows: (?P<rows>[^\n]+) -->\n)?)"
    r"(?:\n(?:\|[^\n]*\n)+)?"
)
Rows = list[list[str]]  # the headings, then the rows


def pages() -> list[Path]:
    """The pages with tables from files."""
    candidates = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in candidates if "<!-- table: " in page.read_text(encoding="utf-8")]


def filled(text: str) -> str:
    """The same page with every marked table as its file has it."""
    return _MARKED.sub(_table, text)


def _table(found: re.Match[str]) -> str:
    rows = selected(read(RESULTS / found["file"]), _names(found["columns"]), _names(found["rows"]))
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return f"{found['marks']}\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _names(text: str | None) -> list[str]:
    return text.split("; ") if text else []


def selected(table: Rows, columns: Sequence[str], names: Sequence[str]) -> Rows:
    """The columns and rows of these names; an empty list means all. The first column always stays."""
    head, *rows = table
    places = [0, *(head.index(column) for column in columns)] if columns else range(len(head))
    if names:
        rows = [next(row for row in rows if row[0] == name) for name in names]
    return [[row[place] for place in places] for row in [head, *rows]]


def read(path: Path) -> Rows:
    """The table of a CSV file, or the means of a results.json."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))
    (numbers,) = json.loads(path.read_text(encoding="utf-8"))["arenas"].values()
    columns = numbers["columns"]
    measures = list(next(iter(columns.values())))
    return [
        ["method", *measures],
        *([name, *(spread(own[m]) for m in measures)] for name, own in columns.items()),
    ]


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation; of one value itself."""
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def fill_pages() -> None:
    """Write the tables into all pages."""
    for page in pages():
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    fill_pages()
