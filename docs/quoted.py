"""The numbers in the text of pages, written from the committed files of results.

    python docs/quoted.py        (or: make reference)
    python docs/quoted.py --typed        where numbers are that come from no file

Nobody types a measurement into a sentence. After the text, a comment says where each of its numbers comes
from, in their order, and `make reference` writes the numbers again. It covers the text back to the last
heading or to the last such comment:

    An epoch takes 36.1 ms, 3.7 times one of plain training.

    <!-- numbers: impressions/epoch.csv
    36.1 = {700 x 400 | transport}
    3.7 = {700 x 400 | transport} / {700 x 400 | plain}
    -->

`{row | column}` is a cell of a CSV file in docs/results, or the mean of a results.json. A row is named by
its first cell, or by its first cells with ", " between them; a column by its heading, or the column `value`
if none is named. A third part chooses one of several numbers in a cell: of `+1.3 (+0.9 to +1.6)` they are
1, 2 and 3. A row with `*` is all rows that fit, for min, max and mean. `{file.csv: row | column}` reads
another file, and `{file.json: key > key}` a number of any JSON file. Between cells may stand + - * / and
the functions in FUNCTIONS. The number is written with the sign, the commas and the decimals that it has in
the text.

A number is a measurement if it has decimals or a power of ten, or a unit after it, in a sentence or in a
table that comes from no file. Settings are written as code (`0.5`), so they are none. Where a section
explains by arithmetic or by an example, it says so with `<!-- no measurements: why -->`. A test finds
numbers that are outside of all this, and pages that differ from their files.
"""

import ast
import json
import operator
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import tables

ROOT = Path(__file__).parents[1]
UNITS = r"%|percent|ms\b|s\b|seconds\b|minutes\b|hours\b|times (?!as many)|bytes\b|[KMG]B\b|GFLOP"
_COMMENT = re.compile(r"<!-- (?P<kind>numbers|no measurements): ?(?P<body>.*?)-->\n?", re.S)
_HEADING = re.compile(r"^#+ .*\n", re.M)
_NUMBER = re.compile(
    r"(?<![\w.,/^@=-])[-+±]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)?(?:\.\d+)?(?:(?<=\d)e-?\d+)?(?![\w/^@=]|\.\d|,\d)"
)
_CODE = re.compile(
    r"```.*?```|<!-- claims -->.*?<!-- end of claims -->|<!-- verdicts: .*?<!-- end of verdicts -->"
    r"|<!-- table: [^\n]*(?:\n<!-- [^\n]*)*\n\n(?:\|[^\n]*\n)*|<!--.*?-->"  # tables of files, comments
    r"|^    [^\n]*$|^\|[-:| ]*$|`[^`]*`|\]\([^)]*\)|https?:\S+|\$[^$\n]+\$",
    re.S | re.M,
)
_UNIT = re.compile(rf"(?:(?: to| and| or| /) [-+]?[\d.,]*\d)? ?(?:{UNITS})")
_CELL = re.compile(r"\{([^}]+)\}")
_IN_CELL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
# Numbers that are no measurements wherever they stand: nominal levels, versions, the paper's address.
ALLOWED = re.compile(
    r"95 %|arXiv:2203\.13956|Python 3\.1\d(?:(?:,| to| or) 3\.1\d)*"
    r"|(?:Towpath|implicit|LensKit|RecTools|RecBole) \d+(?:\.\d+)+"
)
# Pages that a program writes as a whole; tests compare them with their files.
WRITTEN = (
    "CHANGELOG.md",
    "docs/settings.md",
    "docs/commands.md",
    "docs/results/index.md",
    "docs/results/claims.md",
    "docs/results/table-*",
    "docs/results/figure-*",
    "docs/results/simulation-by-chance-*",
    "docs/results/impressions/[!r]*",
    "docs/results/evidence/results.md",
    "docs/results/open-bandit/results.md",
    "docs/results/theorem-3/results.md",
)
FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "mean": lambda *values: mean(values),
    "abs": abs,
    "gain": lambda new, old: 100 * (new / old - 1),  # in percent
    "standard_error": lambda share, users: (share * (100 - share) / users) ** 0.5,  # of a share in percent
}
_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Passage:
    """Some text, and the comment that says where its numbers come from."""

    text: str
    kind: str  # numbers, no measurements, or nothing
    body: str

    @property
    def entries(self) -> list[tuple[str, str]]:
        """The numbers with their formulas."""
        lines = re.sub(r"\n +", " ", self.body).split("\n")[1:]  # a formula may go on in the next line
        parted = (line.partition(" = ") for line in lines if line.strip())
        return [(shown, formula.strip()) for shown, _, formula in parted]

    @property
    def file(self) -> str:
        """The file of cells that name none."""
        return self.body.split("\n")[0].strip()

    def places(self) -> list[tuple[int, int]]:
        """Where its measurements stand: what looks like one, and what the comment lists."""
        listed = {shown for shown, _ in self.entries} if self.kind == "numbers" else set()
        return [place for place, text, looks in numbers_in(self.text) if looks or text in listed]

    def written(self) -> str:
        """The text and its comment with the numbers of today's files."""
        entries = self.entries
        shown = [self.text[begin:end] for begin, end in self.places()]
        if shown != [text for text, _ in entries]:
            raise ValueError(f"the text has {shown}, its comment {[text for text, _ in entries]}")
        made = [formatted(evaluated(formula, self.file), text) for text, formula in entries]
        text, last = "", 0
        for (begin, end), number in zip(self.places(), made, strict=True):
            text, last = text + self.text[last:begin] + number, end
        lines = [_entry(f"{number} = {formula}") for number, (_, formula) in zip(made, entries, strict=True)]
        return f"{text}{self.text[last:]}<!-- numbers: {self.file}\n{''.join(lines)}-->\n"


def _entry(line: str) -> str:
    return (
        textwrap.fill(line, 116, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        + "\n"
    )


def numbers_in(text: str) -> Iterator[tuple[tuple[int, int], str, bool]]:
    """Every number of a text outside of code, tables and links: place, text, whether it looks measured."""
    blank = _CODE.sub(lambda found: " " * len(found[0]), text)
    blank = ALLOWED.sub(lambda found: "_" * len(found[0]), blank)
    for found in _NUMBER.finditer(blank):
        if any(sign.isdigit() for sign in found[0]):
            looks = (
                "." in found[0]
                or "e" in found[0]
                or _UNIT.match(blank.replace("\n", " "), found.end()) is not None
            )
            yield found.span(), found[0], looks


def passages(text: str) -> Iterator[Passage]:
    """The parts of a page, one for each comment, and what stands between them and the headings."""
    last = 0
    for found in _COMMENT.finditer(text):
        begins = [last, *(heading.end() for heading in _HEADING.finditer(text, last, found.start()))]
        yield from (Passage(text[a:b], "", "") for a, b in pairwise(begins))
        yield Passage(text[begins[-1] : found.start()], found["kind"], found["body"])
        last = found.end()
    yield Passage(text[last:], "", "")


def filled(text: str) -> str:
    """The same page with the numbers that its files have."""
    return "".join(_written(passage) for passage in passages(text))


def _written(passage: Passage) -> str:
    if passage.kind == "numbers":
        return passage.written()
    return passage.text + (f"<!-- {passage.kind}: {passage.body}-->\n" if passage.kind else "")


def typed(text: str) -> list[str]:
    """The measurements in a page that come from no file."""
    return [text[begin:end] for begin, end in _typed_places(text)]


def _typed_places(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for passage in passages(text):
        start = text.index(passage.text, start)
        if not passage.kind:
            yield from ((start + begin, start + end) for begin, end in passage.places())
        start += len(passage.text)


def by_hand() -> list[Path]:
    """The pages that people write."""
    every = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")}
    written = {
        path for pattern in WRITTEN for found in ROOT.glob(pattern) for path in (found, *found.rglob("*"))
    }
    return sorted(every - written)


def told() -> Iterator[str]:
    """Where measurements are typed: page, line and number."""
    for page in by_hand():
        text = page.read_text(encoding="utf-8")
        for begin, end in _typed_places(text):
            line = text.count("\n", 0, begin) + 1
            yield f"{page.relative_to(ROOT)}:{line}: {text[begin:end]}"


def formatted(value: float, like: str) -> str:
    """The number with the sign, the commas, the leading zero and the decimals that another has."""
    if "e" in like:
        mantissa, _, power = f"{value:.{len(like.partition('e')[0].partition('.')[2])}e}".partition("e")
        return f"{mantissa}e{int(power)}"
    decimals = len(like.partition(".")[2])
    rounded = Decimal(repr(round(value, 10))).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    sign = ("-" if rounded < 0 else "+") if like[0] in "+-" else "-" if rounded < 0 else ""
    digits = f"{abs(rounded):,}" if "," in like else f"{abs(rounded)}"
    bare = like.lstrip("+-±").startswith(".")
    return ("±" if like[0] == "±" else sign) + (digits.removeprefix("0") if bare else digits)


def evaluated(formula: str, file: str) -> float:
    """The value of a formula; cells that name no file are in this one."""
    cells = [numbers_of(found, file) for found in _CELL.findall(formula)]
    names = iter(range(len(cells)))
    tree = ast.parse(_CELL.sub(lambda _: f"cell{next(names)}", formula), mode="eval")
    return _value(tree.body, {f"cell{number}": values for number, values in enumerate(cells)})


def _value(node: ast.AST, names: dict[str, list[float]]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if len(names[name]) == 1:
            return names[name][0]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, names)
        case ast.BinOp(left=left, op=sign, right=right):
            return _OPERATORS[type(sign)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(value for argument in arguments for value in _values(argument, names)))
    raise ValueError(f"{ast.unparse(node)} is no formula of cells")


def _values(node: ast.AST, names: dict[str, list[float]]) -> list[float]:
    """All numbers of an argument: those of several rows, or one."""
    return names[node.id] if isinstance(node, ast.Name) else [_value(node, names)]


def numbers_of(reference: str, file: str) -> list[float]:
    """The number that a reference names; several where its row has a `*`."""
    named = re.match(r"(\S+\.(?:csv|json)): (.*)", reference)
    if named:
        file, reference = named.groups()
    path = tables.RESULTS / file
    if path.suffix == ".json" and path.name != "results.json":
        return [_by_keys(json.loads(path.read_text(encoding="utf-8")), reference)]
    row, column, which = [*(part.strip() for part in reference.split(" | ")), "", ""][:3]
    head, *rows = tables.read(path)
    fitting = [line for line in rows if line[0] == row] or [line for line in rows if _begins(line, row)]
    if not fitting or (len(fitting) > 1 and "*" not in row):
        raise ValueError(f"{file} has {len(fitting)} rows that begin with {row!r}")
    place = head.index(column or "value")
    return [float(_IN_CELL.findall(line[place].replace(",", ""))[int(which or 1) - 1]) for line in fitting]


def _begins(line: list[str], row: str) -> bool:
    """Whether the first cells are these; `*` stands for anything."""
    pattern = "*".join(re.escape(part) for part in row.split("*")).replace("*", ".*")
    return re.match(f"{pattern}, ", f"{', '.join(line)}, ") is not None


def _by_keys(value: Any, keys: str) -> float:
    for key in keys.split(" > "):
        value = value[int(key)] if isinstance(value, list) else value[key.strip()]
    return float(value)


def pages() -> list[Path]:
    """The pages whose text has numbers from files."""
    candidates = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in candidates if "<!-- numbers: " in page.read_text(encoding="utf-8")]


def fill_pages() -> None:
    """Write the numbers into all pages."""
    for page in pages():
        try:
            page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
        except (ValueError, KeyError, IndexError, OSError) as error:
            raise SystemExit(f"{page.relative_to(ROOT)}: {error}") from error


if __name__ == "__main__":
    if sys.argv[1:] == ["--typed"]:
        print("\n".join(told()))
    else:
        fill_pages()
