"""The list of published tables and figures in results/index.md, written from the committed results.

    python docs/published.py        (or: make reference)

Every table or figure of the paper has a line for each data set: what is there, by which code, and what is
missing. A page that was computed before fits were committed has a note that says so; the note goes when the
page is computed again. A test compares the pages with the files.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from towpath.experiments.paper.benchmarks import benchmark_spec
from towpath.experiments.paper.catalogue import EXPERIMENTS
from towpath.experiments.paper.experiment import Experiment
from towpath.experiments.paper.record import folder_name
from towpath.models.registry import depends_on_seed

RESULTS = Path(__file__).parent / "results"
PAGE = RESULTS / "index.md"
_PAGES = re.compile(r"(?<=<!-- pages -->\n).*?(?=<!-- end of pages -->)", re.S)
_NOTED = re.compile(r"<!-- earlier -->\n.*?<!-- end of earlier -->\n\n", re.S)
_NOTE = """\
<!-- earlier -->
> **Of an earlier version of the code** (`{code}`), computed before fits were committed with the pages.
> Today's code may give other numbers. What has been computed again, and what is missing:
> [all pages](../index.md).
<!-- end of earlier -->

"""
_TREE = re.compile(r"(?<=:maxdepth: 1\n\n).*?(?=```)", re.S)


def pages() -> Iterator[tuple[Experiment, str, str]]:
    """Every declared table or figure with its data set and folder."""
    for experiment in EXPERIMENTS.values():
        for benchmark in experiment.benchmarks:
            yield experiment, benchmark, folder_name(experiment.name, [benchmark])


def is_earlier(folder: str) -> bool:
    """Whether a page was computed before fits were committed, so that none of its numbers can be traced."""
    return (RESULTS / folder / "results.json").is_file() and not (RESULTS / folder / "run.json").is_file()


def noted(folder: str, text: str) -> str:
    """A page with the note about earlier code after its title, or without it if its fits are committed."""
    text = _NOTED.sub("", text)
    if not is_earlier(folder):
        return text
    results = json.loads((RESULTS / folder / "results.json").read_text(encoding="utf-8"))
    title, rest = text.split("\n\n", 1)
    return f"{title}\n\n{_NOTE.format(code=results['code'])}{rest}"


def index_text() -> str:
    """The page with its list of contents and its table as the files have them."""
    text = PAGE.read_text(encoding="utf-8")
    text = _TREE.sub(lambda found: "".join(f"{line}\n" for line in _contents(found[0])), text)
    return _PAGES.sub(lambda _: "\n" + "".join(f"{line}\n" for line in _overview()) + "\n", text)


def _contents(before: str) -> list[str]:
    """Our pages, then those that other commands write, as they were listed by hand."""
    declared = {folder: _title(experiment, benchmark) for experiment, benchmark, folder in pages()}
    own = [
        f"{title} <{folder}/results>"
        for folder, title in declared.items()
        if (RESULTS / folder / "results.md").is_file()
    ]
    return own + [line for line in before.splitlines() if _folder(line) not in declared]


def _folder(line: str) -> str:
    return line.partition("<")[2].partition("/")[0]


def _title(experiment: Experiment, benchmark: str) -> str:
    """What the page is called in a list: the number of the table or what it shows, and the data set."""
    title = experiment.title.partition(",")[0].removeprefix("Appendix: ")
    return f"{title[:1].upper()}{title[1:]}, {benchmark_spec(benchmark).title}"


def _overview() -> Iterator[str]:
    """How many pages there are, then the table."""
    folders = [folder for _, _, folder in pages()]
    there = [folder for folder in folders if (RESULTS / folder / "results.json").is_file()]
    earlier = [folder for folder in there if is_earlier(folder)]
    finished, left = len(there) - len(earlier), len(folders) - len(there)
    yield f"{finished} of {len(folders)} pages are computed with committed fits, {len(earlier)} are of an"
    yield f"earlier version of the code, {left} are not computed yet."
    yield ""
    yield from _table()


def _table() -> Iterator[str]:
    yield "| page | fits | code | missing |"
    yield "| --- | --- | --- | --- |"
    for experiment, benchmark, folder in pages():
        path = RESULTS / folder / "results.json"
        if path.is_file():
            yield _line(experiment, benchmark, folder, json.loads(path.read_text(encoding="utf-8")))
        else:
            fits = sum(_wanted(experiment, benchmark).values())
            yield f"| {folder} | 0 of {fits} | | all |"


def _line(experiment: Experiment, benchmark: str, folder: str, results: dict[str, Any]) -> str:
    there = {
        column: max(map(len, measures.values()))
        for column, measures in results["arenas"][benchmark]["columns"].items()
    }
    wanted = _wanted(experiment, benchmark)
    missing = [column for column, fits in wanted.items() if there.get(column, 0) < fits]
    finished = sum(min(fits, there.get(column, 0)) for column, fits in wanted.items())
    left = f"{len(missing)} of {len(wanted)} rows" if len(missing) > 1 else "".join(missing)
    first, *more = results.get("codes") or [results["code"]]
    codes = f"{first} and {len(more)} more" if more else f"{first}, earlier" if is_earlier(folder) else first
    # The list above has the links: with them lines would be too long.
    return f"| {folder} | {finished} of {sum(wanted.values())} | {codes} | {left} |"


def _wanted(experiment: Experiment, benchmark: str) -> dict[str, int]:
    """How many fits each column has."""
    return {
        column: experiment.seeds_of(column) if depends_on_seed(recipe.model) else 1
        for column, recipe in experiment.columns_on(benchmark).items()
    }


def write() -> None:
    """Write the list, and the notes on pages."""
    PAGE.write_text(index_text(), encoding="utf-8")
    for _, _, folder in pages():
        page = RESULTS / folder / "results.md"
        if page.is_file():
            page.write_text(noted(folder, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
