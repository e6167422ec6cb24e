"""Markdown pages with at most 116 columns: paragraphs are wrapped, commands continued, wide tables split.

    python docs/narrow.py docs/results/table-1-ml-1m/results.md

Only lines that are too long change. A wide table becomes several, each with the first column; a table whose
cells are too long for that becomes a list. Nothing else about the text changes.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

WIDTH = 116
_COMMAND = re.compile(r" +(towpath|python|pip|make) ")
Table = list[list[str]]  # rows of cells: the headings, the marks of alignment, the rest


def narrow(text: str) -> str:
    """The same page with no line longer than WIDTH, as far as words allow."""
    return "\n".join(line for block in _blocks(text) for line in _narrow_block(block)) + "\n"


def _blocks(text: str) -> Iterator[list[str]]:
    """Runs of lines that belong together: a fenced block, a table, a list item, a paragraph, blank lines."""
    fenced, number = False, 0
    keys = []
    for line in text.rstrip("\n").split("\n"):
        begins = not fenced and line.startswith("<!--") and "-->" not in line  # a comment of several lines
        fence = line.startswith("```") or begins or (fenced and line == "-->")
        starts_item = re.match(r"\s*([-*]|\d+\.) ", line) and not line.startswith("    ")
        kind = "fence" if fenced or fence else _kind(line)
        if not keys or keys[-1][0] != kind or (kind == "text" and starts_item) or kind == "code":
            number += 1
        fenced ^= fence
        keys.append((kind, number))
    lines = iter(text.rstrip("\n").split("\n"))
    for _, run in groupby(keys):
        yield [next(lines) for _ in run]


def _kind(line: str) -> str:
    if not line.strip():
        return "blank"
    if line.startswith("|"):
        return "table"
    return "code" if line.startswith("    ") else "heading" if line.startswith(("#", "<")) else "text"


def _narrow_block(lines: list[str]) -> list[str]:
    if all(len(line) <= WIDTH for line in lines) or lines[0].startswith(("```", "#", "<")):
        return lines
    if lines[0].startswith("|"):
        return _narrow_table([_cells(line) for line in lines])
    if lines[0].startswith("    "):
        return _continued(lines[0]) if _COMMAND.match(lines[0]) else lines
    mark = re.match(r"\s*(?:(?:[-*]|\d+\.) )?", lines[0])
    assert mark is not None
    return _wrapped(" ".join(line.strip() for line in lines)[len(mark[0].strip()) :].strip(), mark[0])


def _wrapped(text: str, mark: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _continued(command: str) -> list[str]:
    """One command over several lines, broken before its options."""
    lines = [""]
    for part in re.split(r" (?=--)", command.rstrip()):
        joined = f"{lines[-1]} {part}" if lines[-1] else part
        if len(joined) + 2 <= WIDTH:
            lines[-1] = joined
        else:
            lines.append(" " * 8 + part)
    return [line + " \\" for line in lines[:-1]] + lines[-1:]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _narrow_table(table: Table) -> list[str]:
    """The same table in as few parts as fit, with about as many columns each."""
    columns = len(table[0]) - 1
    for parts in range(1, columns + 1):
        size = -(-columns // parts)
        groups = [[0, *range(begin, min(begin + size, columns + 1))] for begin in range(1, columns + 1, size)]
        drawn = [_drawn([[row[column] for column in group] for row in table]) for group in groups]
        if all(len(lines[0]) <= WIDTH for lines in drawn):
            return [line for number, lines in enumerate(drawn) for line in ([""] if number else []) + lines]
    return _as_list(table)


def _drawn(table: Table) -> list[str]:
    """The lines of a table with its columns one under the other."""
    widths = [
        max(len(row[column]) for row in table if row is not table[1]) for column in range(len(table[0]))
    ]
    right = [mark.endswith(":") for mark in table[1]]
    rules = [
        ("-" * (width + 1) + ":") if r else "-" * (width + 2) for width, r in zip(widths, right, strict=True)
    ]
    lines = []
    for row in (table[0], *table[2:]):
        cells = [cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)]
        lines.append(f"| {' | '.join(cells)} |")
    return [lines[0], f"|{'|'.join(rules)}|", *lines[1:]]


def _as_list(table: Table) -> list[str]:
    """A row becomes an entry: its first cell in bold, then the other cells, each after its heading."""
    lines: list[str] = []
    for row in table[2:]:
        cells = zip(table[0][1:], row[1:], strict=True)
        text = ". ".join(f"{head.capitalize()}: {cell.rstrip('.')}" for head, cell in cells if cell)
        lines += _wrapped(f"**{row[0]}.** {text}.", "- ")
    return lines


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(narrow(page.read_text(encoding="utf-8")), encoding="utf-8")
