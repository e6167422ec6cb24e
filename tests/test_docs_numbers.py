"""Every measurement in the documentation comes from a committed file, and says what the file says."""

import json
from pathlib import Path

import pytest
from benchmarks import evidence, open_bandit, theorem_3

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
MOST_EXEMPT = 12  # passages of arithmetic and examples; think twice before you raise it


@pytest.fixture
def quoted(script):
    return script("quoted")


@pytest.fixture
def in_tmp(quoted, monkeypatch, tmp_path):
    monkeypatch.setattr(quoted.tables, "RESULTS", tmp_path)
    (tmp_path / "a.csv").write_text(
        'method,world,seconds,over\nplain,0,2.0,\ntransport,0,7.456,"+1.3 (+0.9 to +1.6)"\ntransport,1,9.0,\n'
    )
    return tmp_path


def test_no_measurement_is_typed(quoted):
    assert len(quoted.by_hand()) > 40
    typed = {page.name: quoted.typed(page.read_text(encoding="utf-8")) for page in quoted.by_hand()}
    assert {page: numbers for page, numbers in typed.items() if numbers} == {}, (
        "give them a file: docs/quoted.py says how, and `python docs/quoted.py --typed` where they are"
    )


def test_numbers_in_sentences_are_those_of_their_files(quoted):
    assert len(quoted.pages()) > 20
    for page in quoted.pages():
        text = page.read_text(encoding="utf-8")
        assert quoted.filled(text) == text, f"{page.name} is not what its files say: run `make reference`"


def test_few_passages_are_exempt(quoted):
    pages = [page.read_text(encoding="utf-8") for page in quoted.by_hand()]
    assert sum(page.count("<!-- no measurements: ") for page in pages) <= MOST_EXEMPT


def test_typed_numbers_are_told_with_their_lines(quoted, tmp_path, monkeypatch):
    monkeypatch.setattr(quoted, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("# Title\n\nText.\n\nIt takes 1.5 s,\nand 2.5 s.\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n2.5 times faster.\n")
    assert list(quoted.told()) == ["page.md:5: 1.5", "page.md:6: 2.5"]


def test_recorded_measurements_name_command_date_and_commit(quoted):
    head, *rows = quoted.tables.read(RESULTS / "recorded.csv")
    assert head == ["name", "value", "command", "date", "commit"]
    assert len({row[0] for row in rows}) == len(rows)
    assert all(all(cell.strip() for cell in row) for row in rows)
    text = "".join(page.read_text(encoding="utf-8") for page in quoted.pages())
    text = " ".join(text.split())
    unused = [row[0] for row in rows if f"{{{row[0]}" not in text and f"recorded.csv: {row[0]}" not in text]
    assert unused == []


PAGE = """# Title

It takes 7.5 s, 3.73 times plain, +1.3 % (+0.9 to +1.6) over it, with `0.5` as floor and 95 % intervals.

<!-- numbers: a.csv
7.5 = {transport, 0 | seconds}
3.73 = {transport, 0 | seconds} / {plain | seconds}
+1.3 = {transport, 0 | over}
+0.9 = {transport, 0 | over | 2}
+1.6 = {transport, 0 | over | 3}
-->

Of 1,204 users 40 left.
"""


@pytest.mark.usefixtures("in_tmp")
def test_a_page_keeps_the_numbers_of_its_file(quoted):
    assert quoted.filled(PAGE) == PAGE
    assert quoted.typed(PAGE) == []


def test_a_changed_file_changes_the_page(quoted, in_tmp):
    path = in_tmp / "a.csv"
    path.write_text(path.read_text().replace("7.456", "8").replace("+0.9", "-0.2"))
    made = quoted.filled(PAGE)
    assert "It takes 8.0 s, 4.00 times plain, +1.3 % (-0.2 to +1.6)" in made
    assert "8.0 = {transport, 0 | seconds}\n" in made
    assert quoted.filled(made) == made


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It takes 7.5 of it.", ["7.5"]),
        ("It takes 3 to 5 s.", ["3", "5"]),
        ("They differ by 4e-7 at most.", ["4e-7"]),
        ("Of ten 40 % left, and .5 more.", ["40", ".5"]),
        ("| a | 12 MB |\n", ["12"]),
        ("Ten seeds, 20 negatives, `0.5`, 1,204 users.", []),
        ("<!-- table: a.csv -->\n\n| a | 1.5 |\n", []),
        ("    python 1.5\n", []),
        ("At 95 % with Python 3.12.", []),
        ("[a page](v1.5.md)", []),
        ("Say 1.5 GB.\n\n<!-- no measurements: arithmetic -->\n\nIt took 2.5 GB.", ["2.5"]),
        ("It has 1.5.\n\n# Next\n\nSay 2 GB.\n\n<!-- no measurements: arithmetic -->\n", ["1.5"]),
    ],
)
def test_what_looks_like_a_measurement(text, found, quoted):
    assert quoted.typed(text) == found


@pytest.mark.usefixtures("in_tmp")
@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("max({transport* | seconds})", 9.0),
        ("mean({* | seconds}, 2)", pytest.approx(5.114)),
        ("gain({transport, 1 | seconds}, {plain | seconds})", 350.0),
        ("-(1 - 3) * 2", 4),
        ("standard_error(50, 100)", 5.0),
    ],
)
def test_formulas(formula, value, quoted):
    assert quoted.evaluated(formula, "a.csv") == value


@pytest.mark.usefixtures("in_tmp")
@pytest.mark.parametrize(
    "formula", ["{transport | seconds}", "{nobody | seconds}", "__import__('os')", "{plain | no}"]
)
def test_a_formula_that_cannot_be_is_refused(formula, quoted):
    with pytest.raises((ValueError, KeyError)):
        quoted.evaluated(formula, "a.csv")


@pytest.mark.usefixtures("in_tmp")
def test_a_comment_that_misses_a_number_is_refused(quoted):
    with pytest.raises(ValueError, match=r"the text has .*'\+1.6'"):
        quoted.filled(PAGE.replace("+1.6 = {transport, 0 | over | 3}\n", ""))


@pytest.mark.parametrize(
    ("value", "like", "shown"),
    [
        (1234.5, "1,000", "1,235"),
        (0.614, ".61", ".61"),
        (-0.2, "+1.0", "-0.2"),
        (0.125, "0.10", "0.13"),
        (2, "3.0", "2.0"),
        (1.4e-6, "4e-7", "1e-6"),
        (1.4e-6, "1.2e-4", "1.4e-6"),
    ],
)
def test_a_number_is_written_like_the_one_before(value, like, shown, quoted):
    assert quoted.formatted(value, like) == shown


def test_the_page_of_theorem_3_is_that_of_its_numbers():
    logs = json.loads((RESULTS / "theorem-3" / "numbers.json").read_text(encoding="utf-8"))["logs"]
    page = (RESULTS / "theorem-3" / "results.md").read_text(encoding="utf-8")
    sections = [theorem_3.section(number, log, found) for number, (log, found) in enumerate(logs.items(), 1)]
    assert page == "\n".join([theorem_3.INTRODUCTION, *sections])


def test_the_page_of_evidence_is_that_of_its_counts():
    counts = json.loads((RESULTS / "evidence" / "counts-9000-9099.json").read_text(encoding="utf-8"))
    page = (RESULTS / "evidence" / "results.md").read_text(encoding="utf-8")
    assert page == evidence.page(counts, 100, 9000)


def test_the_page_of_open_bandit_is_that_of_its_tasks():
    tasks = json.loads((RESULTS / "open-bandit" / "tasks.json").read_text(encoding="utf-8"))
    assert (RESULTS / "open-bandit" / "results.md").read_text(encoding="utf-8") == open_bandit.page(tasks)
