"""The pages of claims and of published results follow the committed files, also where some are missing."""

import csv
import json
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from towpath.experiments.paper.catalogue import EXPERIMENTS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
RESULT_FILES = sorted(RESULTS.glob("*/results.json"))


@pytest.fixture
def claims(script):
    return script("claims")


@pytest.fixture
def published(script):
    return script("published")


@pytest.fixture
def impression_table(script):
    return script("impression_table")


@pytest.fixture
def few(claims, tmp_path, monkeypatch):
    """A folder of results with one page and the files of impressions."""
    for module in (claims, claims.published, claims.impression_claims.impression_table):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    shutil.copytree(RESULTS / "impressions", tmp_path / "impressions")
    shutil.copytree(
        RESULTS / "figure-overlap-latent-exploration-0", tmp_path / "figure-overlap-latent-exploration-0"
    )
    return tmp_path


def write_overlap(folder, share, span):
    """A page of the overlap figure whose lead over IPW is this."""
    results = json.loads((RESULTS / "figure-overlap-latent-exploration-0" / "results.json").read_text())
    for verdict in results["verdicts"]:
        verdict["arena"] = f"latent world, {share} % random exposures"
        verdict["evidence"] = f"Rel@10 (full) {span}. 5 seeds."
    target = folder / f"figure-overlap-latent-exploration-{share}"
    target.mkdir(exist_ok=True)
    (target / "results.json").write_text(json.dumps(results))


def words(text):
    return " ".join(text.split())


def test_claims_can_be_written_without_any_page(claims, few):
    shutil.rmtree(few / "figure-overlap-latent-exploration-0")
    shutil.rmtree(few / "impressions")
    page = words(claims.claims_text())
    assert page.count("No page is computed yet.") == len(claims.GROUPS)
    assert "DT-MCF is better than MCF: MovieLens 1M; MovieLens 1M simulation; LastFM;" in page
    assert claims.verdicts() == []


@pytest.mark.usefixtures("few")
def test_a_claim_of_a_page_leaves_the_list_of_what_is_missing(claims):
    section = words(claims.claims_text()).split("## Where the two domains overlap more")[1].split(" ## ")[0]
    assert "** on latent world, 0 % random exposures ([page]" in section
    left = section.split("Not computed yet at full size:")[1]
    assert "latent worlds with 5, 10, 25, 50, 100 % random exposures" in left


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ("+0.30 (+0.20 to +0.40)", "+0.01 (-0.05 to +0.10)", "falls as overlap grows, as the paper argues"),
        (
            "-0.30 (-0.40 to -0.20)",
            "+0.01 (-0.05 to +0.10)",
            "grows with overlap, the opposite of what the paper",
        ),
        ("+0.08 (+0.07 to +0.10)", "+0.03 (-0.05 to +0.10)", "no trend is certain"),
    ],
)
def test_the_trend_of_overlap_follows_the_pages(claims, few, first, last, said):
    write_overlap(few, 0, first)
    write_overlap(few, 100, last)
    page = words(claims.claims_text())
    assert f"0 %: {first}; 100 %: {last}. " in page
    assert said in page


def test_a_reason_is_given_only_where_a_page_has_the_outcome(claims, few):
    reason = "Where clicks come by chance, an item without a click"
    assert reason not in words(claims.claims_text())
    shutil.copytree(RESULTS / "simulation-by-chance-ml-1m", few / "simulation-by-chance-ml-1m")
    verdicts = json.loads((few / "simulation-by-chance-ml-1m" / "results.json").read_text())["verdicts"]
    lost = any(v["claim"] == "DT-MCF is better than MCF" and v["outcome"] != "held" for v in verdicts)
    assert (reason in words(claims.claims_text())) == lost


def test_claims_use_the_files_of_impressions(claims, few):
    path = few / "impressions" / "lead-small.csv"
    lines = path.read_text().splitlines()
    own = next(n for n, line in enumerate(lines) if line.startswith("0,0.6,plain,"))
    lines[own] = "0,0.6,plain,10,+7.7,-1.1,+16.5,-3.3"
    path.write_text("\n".join(lines) + "\n")
    page = words(claims.claims_text())
    assert "nothing +7.7 % (-1.1 to +16.5)" in page
    assert "(table-1-impressions/results.md)" in page


def test_every_group_says_where_the_paper_claims_it(claims):
    assert all(group.said for group in claims.GROUPS)
    page = (RESULTS / "claims.md").read_text(encoding="utf-8")
    assert all(f"## {group.title}\n" in page for group in claims.GROUPS)


def test_readme_quotes_three_claims_and_impressions(claims):
    lines = re.findall(r"^- .*$", claims.quoted_lines(), re.M)
    assert len(lines) == 4
    assert "true clicks" in lines[0]
    known = {(one.claim, one.outcome) for one in claims.verdicts()}
    for line in lines[1:]:
        claim, outcome = re.match(r"- (.*): \*\*(.*)\*\* on", line).groups()
        assert (claim, outcome) in known


def test_the_main_page_of_results_has_the_verdicts_of_its_tables(claims):
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert claims.with_verdicts(page) == page, "run `make reference`"
    assert page.count("<!-- verdicts: ") == 3


@pytest.mark.usefixtures("few")
def test_a_page_that_is_not_computed_has_no_verdicts(claims):
    made = claims.with_verdicts("<!-- verdicts: table-1-ml-1m -->\nold\n<!-- end of verdicts -->\n")
    assert made.endswith("-->\n\n- table-1-ml-1m is not computed yet.\n\n<!-- end of verdicts -->\n")
    assert claims.with_verdicts(made) == made


@pytest.mark.usefixtures("few")
def test_readme_quotes_what_is_computed(claims):
    assert len(re.findall(r"^- ", claims.quoted_lines(), re.M)) == 2


@pytest.mark.parametrize("path", RESULT_FILES, ids=lambda path: path.parent.name)
def test_a_page_without_committed_fits_says_that_it_is_of_earlier_code(path, published):
    page = (path.parent / "results.md").read_text(encoding="utf-8")
    assert published.noted(path.parent.name, page) == page, "run `make reference`"
    assert ("**Of an earlier version of the code**" in page) == (not (path.parent / "run.json").is_file())


def test_the_note_goes_when_fits_are_there(published, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "RESULTS", tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "results.json").write_text('{"code": "s3"}')
    page = "# Title\n\nText.\n"
    noted = published.noted("a", page)
    assert noted.startswith("# Title\n\n<!-- earlier -->\n> **Of an earlier version of the code** (`s3`)")
    assert noted.endswith("<!-- end of earlier -->\n\nText.\n")
    assert published.noted("a", noted) == noted
    (tmp_path / "a" / "run.json").write_text("{}")
    assert published.noted("a", noted) == page


def test_the_list_counts_pages_by_their_code(published):
    page = words((RESULTS / "index.md").read_text(encoding="utf-8"))
    there = len(RESULT_FILES)
    earlier = sum(published.is_earlier(path.parent.name) for path in RESULT_FILES)
    declared = len(list(published.pages()))
    assert (
        f"{there - earlier} of {declared} pages are computed with committed fits, {earlier} are of an" in page
    )
    assert f"{declared - there} are not computed yet" in page
    assert page.count(", earlier |") == earlier


@pytest.mark.parametrize("path", RESULT_FILES, ids=lambda path: path.parent.name)
def test_rows_have_the_names_of_the_declared_experiment(path):
    results = json.loads(path.read_text(encoding="utf-8"))
    ((data, numbers),) = results["arenas"].items()
    names = set(EXPERIMENTS[results["experiment"]].columns_on(data))
    assert set(numbers["columns"]) <= names


def test_the_table_of_impressions_is_that_of_its_files(impression_table):
    page = (RESULTS / "table-1-impressions" / "results.md").read_text(encoding="utf-8")
    assert page == impression_table.page(), "run `make reference`"
    assert all(f"| {row} |" in page for row in ("MCF", "IPW-MF", "ExpoMF", "DT-MCF", "DT-NCF", "DT-Attn"))
    index, claims = ((RESULTS / name).read_text(encoding="utf-8") for name in ("index.md", "claims.md"))
    assert "(table-1-impressions/results.md)" in index
    assert "<table-1-impressions/results>" in index
    assert "(table-1-impressions/results.md)" in claims


def test_the_table_of_impressions_leaves_out_what_is_not_there(impression_table, tmp_path, monkeypatch):
    monkeypatch.setattr(impression_table, "RESULTS", tmp_path)
    (tmp_path / "impressions").mkdir()
    (tmp_path / "impressions" / "semi-ml-1m.csv").write_text(
        "method,worlds,true clicks,sd\nplain,3,4.504,0.228\ntransport,3,6.319,0.037\n"
    )
    page = impression_table.page()
    assert "| method | MovieLens 1M (3 worlds) |\n" in page
    assert "| DT-MCF | 6.32 ± 0.04 |" in page
    assert "nothing (" not in page
    assert "| IPW-MF |" not in page


def test_a_comment_of_several_lines_is_not_made_narrow(script):
    narrow = script("narrow")
    comment = "<!-- numbers: a.csv\n1.5 = " + "{row | column} + " * 9 + "1\n2.5 = {b | c}\n-->"
    assert narrow.narrow(f"Text.\n\n{comment}\n\nMore.\n") == f"Text.\n\n{comment}\n\nMore.\n"


def page_cells(page):
    """Row and heading of every cell in the tables of a page, with the numbers in it.

    Two sweeps on a page have the same rows and headings: several cells, in the order of the files.
    """
    cells = defaultdict(list)
    for block in re.findall(r"(?:^\|.*\n)+", page, re.M):
        head, _, *rows = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            for line in block.splitlines()
        ]
        for row in rows:
            for heading, cell in zip(head[1:], row[1:], strict=True):
                cells[plain(row[0]), plain(heading)].append(re.findall(r"[-+]?\d+(?:\.\d+)?", cell))
    return cells


def plain(text):
    return re.sub(r"(?<!\w)[*_]+|[*_]+(?!\w)|\\", "", text).strip()


def as_numbers(row, column):
    """A value of a table's file with its spread or interval."""
    keys = (column, f"{column} sd", f"{column} low", f"{column} high")
    return [float(row[key]) for key in keys if re.fullmatch(r"[-+.\de]+", row.get(key) or "")]


@pytest.mark.parametrize(
    "path", sorted(RESULTS.glob("*/table-*.csv")), ids=lambda p: f"{p.parent.name}-{p.stem}"
)
def test_tables_of_a_page_are_those_of_its_files(path):
    cells = page_cells((path.parent / "results.md").read_text(encoding="utf-8"))
    first, rows = rows_of(path)
    tables = sorted(path.parent.glob("table-*.csv"), key=lambda p: int(p.stem.removeprefix("table-")))
    earlier = [rows_of(table) for table in tables[: tables.index(path)]]
    compared = 0
    for row in rows:
        for column in row:
            numbers = as_numbers(row, column)
            if column == first or column.endswith((" sd", " low", " high")) or not numbers:
                continue
            before = sum(
                any(r[own] == row[first] and r.get(column) for r in others) for own, others in earlier
            )
            texts = cells[plain(row[first]), plain(column)][before]
            assert is_shown(numbers, texts), (row[first], column, numbers, texts)
            compared += 1
    assert compared


def rows_of(path):
    """The first heading of a table's file, and its rows."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return next(iter(rows[0])), rows


def is_shown(numbers, texts):
    """Whether the texts are these numbers, rounded to the places that each text has."""
    return len(texts) == len(numbers) and all(
        abs(float(text) - number) <= 0.5 * 10.0 ** -len(text.partition(".")[2]) + 1e-9
        for text, number in zip(texts, numbers, strict=True)
    )
