"""What the documentation says is run, or at least compared with the program."""

import csv
import json
import math
import re
import shlex
from pathlib import Path
from statistics import mean
from typing import Literal, get_args, get_origin

import pytest
from typer.main import get_command

from towpath.cli import main
from towpath.cli.verbs import app_with
from towpath.errors import TrainingError
from towpath.experiments.paper.record import folder_name, read_record
from towpath.experiments.result_store import open_store
from towpath.methods.registry import METHODS
from towpath.models.registry import MODELS
from towpath.rng import Rng
from towpath.training.settings import TrainingSettings
from towpath.transport.settings import TransportSettings
from towpath.transport.watch import refuse_collapse
from towpath.worlds.latent import LatentWorld, make_latent_world

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "results" / "appendix").glob("*.md")),
]
MARKDOWN = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
RESULT_FILES = sorted((ROOT / "docs" / "results").glob("*/results.json"))
IMPRESSIONS = sorted((ROOT / "docs" / "results" / "impressions").glob("*.csv"))
WIDEST = 120
NUMBER = re.compile(r"\d+\.?\d*")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)


def verbs(path=(), command=None):
    """Every verb of the command line by its words."""
    command = command or get_command(app_with())
    if not hasattr(command, "commands"):
        return {path: command}
    return {p: c for name, child in command.commands.items() for p, c in verbs((*path, name), child).items()}


def commands_in(page):
    """Every towpath command of a page, as a list of words."""
    text = re.sub(r" \\\n\s+", " ", page.read_text(encoding="utf-8"))  # commands over several lines
    lines = re.findall(r"^(?:    |\$ )(towpath .+)$", text, re.M)
    # Two blanks and more set off a remark.
    return [shlex.split(re.split(r"\s{2,}", line)[0], comments=True)[1:] for line in lines]


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_events(path, header):
    log = make_latent_world(LatentWorld(users=150, items=120, shown_per_user=40), Rng(0)).log
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(header)
        rows.writerows(zip(log.users + 1, log.items + 1, log.times, strict=True))


@every_page
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#`]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@every_page
def test_commands_exist_with_their_options(page):
    known = verbs()
    for words in commands_in(page):
        path = next((tuple(words[:n]) for n in (2, 1) if tuple(words[:n]) in known), None)
        if path is None:
            assert words == ["--help"], f"towpath {' '.join(words)}"
            continue
        options = {opt for p in known[path].params for opt in (*p.opts, *p.secondary_opts)} | {"--help"}
        used = [word for word in words if re.match(r"--?[a-z]", word)]
        assert set(used) <= options, f"towpath {' '.join(words)}"


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_not_too_wide(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    wide = [f"line {n} has {len(line)} columns" for n, line in enumerate(lines, 1) if len(line) > WIDEST]
    assert wide == [], "python docs/narrow.py PAGE mends most of them"


def test_readme_names_the_paper_on_one_line():
    title = "From Intervention to Domain Transportation: A Novel Perspective to Optimize Recommendation"
    readme, cited = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CITATION.cff"))
    assert title in readme
    assert "2203.13956" in readme
    assert title in cited


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.slow
@pytest.mark.usefixtures("in_folder")
def test_readme_example_prints_what_it_says(capsys):
    (code,), (printed,) = blocks(ROOT / "README.md", "python"), blocks(ROOT / "README.md", "text")
    exec(compile(code, "README.md", "exec"), {})
    real = capsys.readouterr().out
    # Another machine may round otherwise and stop an epoch sooner: the words must agree, the metrics nearly.
    assert NUMBER.sub("#", real) == NUMBER.sub("#", printed)
    told, came = ([float(n) for n in NUMBER.findall(text.splitlines()[1])] for text in (printed, real))
    assert came == pytest.approx(told, abs=0.03)


@pytest.mark.slow
@pytest.mark.usefixtures("in_folder")
def test_first_run_works_as_written(capsys):
    text = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    commands = 0
    for language, block in re.findall(r"^```(python|console)\n(.*?)^```", text, re.S | re.M):
        if language == "python":
            exec(compile(block, "quickstart.md", "exec"), {})
            continue
        for line in block.splitlines():
            assert main(shlex.split(line.removeprefix("$ "))[1:]) == 0, capsys.readouterr().err
            commands += 1
    assert commands == 8
    assert '"fallback": true' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("page", "header"),
    [
        ("own-data.md", ["customer", "sku", "bought_at"]),
        ("impressions.md", ["user", "item", "time"]),
        ("outside-tests.md", ["user", "item", "time"]),
        ("features.md", ["user", "item", "time"]),
        ("cleaning.md", ["user", "item", "time"]),
        ("train.md", ["user", "item", "time"]),
        ("evaluate.md", ["user", "item", "time"]),
        ("compare.md", ["user", "item", "time"]),
        ("tune.md", ["user", "item", "time"]),
        ("recommend.md", ["user", "item", "time"]),
        ("production.md", ["user", "item", "time"]),
        ("transport.md", ["user", "item", "time"]),
        ("off-policy.md", ["user", "item", "time"]),
        ("simulation.md", ["user", "item", "time"]),
    ],
)
def test_python_on_the_task_pages_runs(page, header, in_folder):
    import towpath

    write_events(in_folder / "events.csv", header)
    if page == "recommend.md":
        split = towpath.split(towpath.read("events.csv"))
        towpath.save(towpath.fit(split, "ease"), split, "run")
    found = blocks(ROOT / "docs" / page, "python")
    assert found
    for code in found:
        exec(compile(code, page, "exec"), {})


@pytest.fixture
def generated(script):
    return script("generated")


@pytest.fixture
def tables(script):
    return script("tables")


@pytest.fixture
def claims(script):
    return script("claims")


@pytest.fixture
def narrow(script):
    return script("narrow")


@pytest.mark.parametrize("page", ["settings.md", "commands.md"])
def test_reference_pages_are_those_of_the_code(page, generated):
    committed = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert committed == generated.PAGES[page](), (
        f"docs/{page} is out of date: run `make reference` and commit it"
    )


def test_command_reference_has_every_command_and_option():
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for path, command in verbs().items():
        section = text.split(f"## towpath {' '.join(path)}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert all(f"`{spelling}`" in section for spelling in parameter.opts)


def test_settings_reference_has_every_setting_of_every_model_and_method():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    named = {f"Model: {name}": kind for name, kind in MODELS.items()}
    named |= {f"Method: {name}": kind for name, kind in METHODS.items()}
    kinds = {title: kind.settings_type for title, kind in named.items()}
    for title, kind in {"Fit loop: all trained models": TrainingSettings, **kinds}.items():
        section = page.split(f"## {title}\n")[1].split("\n## ")[0]
        assert all(field.description for field in kind.model_fields.values())
        assert all(f"- `{name}` (" in section for name in kind.model_fields)


def test_settings_are_listed_with_default_and_range(generated):
    assert "- `patience` (default `5`; ≥ 0): " in generated.settings_list(TrainingSettings)
    listed = generated.settings_list(TransportSettings)
    assert "- `domain` (default `exact`; `sampled`, `exact`, `ranking`): " in listed
    assert "No settings" in generated.settings_list(METHODS["plain"].settings_type)


def test_tables_of_result_pages_are_those_of_their_files(tables):
    assert len(tables.pages()) > 5
    for page in tables.pages():
        text = page.read_text(encoding="utf-8")
        assert tables.filled(text) == text, f"{page.name} is not what its files say: run `make reference`"


def test_claims_are_those_of_the_committed_results(claims):
    page = (ROOT / "docs" / "results" / "claims.md").read_text(encoding="utf-8")
    assert page == claims.claims_text(), "docs/results/claims.md is out of date: run `make reference`"
    assert (ROOT / "README.md").read_text(encoding="utf-8") == claims.readme_text()
    verdicts = claims.verdicts()
    assert len(verdicts) > 20
    words = " ".join(page.split())
    assert all(" ".join(one.evidence.split()) in words for one in verdicts)


def test_every_declared_claim_is_decided_or_listed_as_missing(claims):
    page = " ".join((ROOT / "docs" / "results" / "claims.md").read_text(encoding="utf-8").split())
    decided = {(one.claim, one.data) for one in claims.verdicts()}
    for claim, data in claims.declared():
        assert claim in page
        assert (claim, data) in decided or data in page


def test_the_list_of_pages_is_that_of_the_committed_results(script):
    page = (ROOT / "docs" / "results" / "index.md").read_text(encoding="utf-8")
    published = script("published")
    assert page == published.index_text(), "docs/results/index.md is out of date: run `make reference`"
    folders = {folder for _, _, folder in published.pages()}
    assert {path.parent.name for path in RESULT_FILES} <= folders
    assert all(f"| {folder} |" in page for folder in folders)


# Pages that were computed before fits were committed have none; the list of pages says which.
WITH_FITS = [path for path in RESULT_FILES if (path.parent / "run.json").is_file()]


@pytest.mark.parametrize("path", WITH_FITS, ids=lambda path: path.parent.name)
def test_numbers_of_a_page_are_those_of_the_committed_fits(path):
    record = read_record(path.parent)
    (facts,) = record.benchmarks
    results = record.results_on(facts, open_store(path.parents[1], record.code))
    published = json.loads(path.read_text(encoding="utf-8"))["benchmarks"][results.facts.name]
    measures = (*results.facts.measures(results.k), *results.facts.further(results.k))
    assert set(results.columns) == set(published["columns"])
    for column, values in published["columns"].items():
        assert values == {measure.heading: results.values(column, measure) for measure in measures}


@pytest.mark.parametrize("path", RESULT_FILES, ids=lambda path: path.parent.name)
def test_a_committed_result_is_from_a_full_run_and_its_page_has_its_numbers(path):
    results = json.loads(path.read_text(encoding="utf-8"))
    assert not results["quick"], "a page from --quick is no result"
    assert "--quick" not in results["command"]
    (data,) = results["arenas"]
    assert path.parent.name == folder_name(results["experiment"], [data])
    page, sweeps = (path.parent / "results.md").read_text(encoding="utf-8"), "figure-ipw-threshold"
    for column, measures in results["arenas"][data]["columns"].items():
        swept = re.split(r": \w+=", column)  # the tables of a sweep name its curve and its values apart
        assert all(part in page for part in swept) or results["experiment"] == sweeps
        assert all(f"{mean(values):.2f}" in page for values in measures.values()) or sweeps in str(path)
    cells = {cell for row in re.findall(r"^\|.*$", page, re.M) for cell in row.strip("|").split("|")}
    shown = {cell.strip().strip("*_") for cell in cells}
    for table in path.parent.glob("table-*.csv"):
        with table.open(encoding="utf-8", newline="") as file:
            head, *_ = csv.reader(file)
        assert head[0] in shown


@pytest.mark.parametrize("path", IMPRESSIONS, ids=lambda path: path.stem)
def test_pages_of_impressions_have_the_numbers_of_their_files(path):
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    assert rows
    for row in rows:
        shown = ["—" if "nan" in cell else cell for cell in row]  # one world has no interval
        assert f"| {' | '.join(shown)} |" in page


def test_a_table_has_the_columns_and_rows_that_are_asked_for(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    (tmp_path / "a.csv").write_text("method,x,y\none,1,2\ntwo,3,4\n")
    numbers = {"columns": {"one": {"Hit": [1.0, 2.0]}, "two": {"Hit": [3.0]}}}
    (tmp_path / "b.json").write_text(json.dumps({"arenas": {"data": numbers}}))
    page = "<!-- table: a.csv -->\n<!-- columns: y -->\n<!-- rows: two; one -->\n\nText.\n"
    made = tables.filled(page)
    assert made.endswith("-->\n\n| method | y |\n| --- | --- |\n| two | 4 |\n| one | 2 |\n\nText.\n")
    assert tables.filled(made) == made
    assert tables.filled("<!-- table: b.json -->\n").endswith("| one | 1.50 ± 0.71 |\n| two | 3.00 |\n")


def test_wide_pages_are_made_narrow(narrow):
    row = "| " + " | ".join(["name", *["12.34 ± 0.56"] * 9]) + " |"
    text = "\n".join([
        "# A title", "", "word " * 60, "", "- " + "entry " * 40, "", row, "|---" * 10 + "|", row, "",
        "    towpath fit events.csv" + " --set l2=0.01" * 10,
    ])  # fmt: skip
    made = narrow.narrow(text)
    assert max(map(len, made.splitlines())) <= narrow.WIDTH
    assert made.count("12.34 ± 0.56") == 18  # nothing is lost
    assert made.count("| name |") == 4  # two tables with a heading and a row each
    assert made.split().count("word") == 60
    assert "\n  entry" in made  # the item goes on under itself
    assert made.count("--set l2=0.01") == 10
    assert " \\\n        --set" in made
    assert narrow.narrow(made) == made


def test_what_is_narrow_stays_as_it_is(narrow):
    text = "# T\n\nOne line\nand another.\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert narrow.narrow(text) == text


def test_a_table_with_long_cells_becomes_a_list(narrow):
    made = narrow.narrow(f"| what | why |\n|---|---|\n| one | {'because ' * 20} |\n")
    assert made.startswith("- **one.** Why: because")
    assert max(map(len, made.splitlines())) <= narrow.WIDTH


@pytest.mark.parametrize("method", METHODS)
def test_defaults_that_a_method_changes_are_told(method):
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for name, value in METHODS[method].training.items():
        assert f"`{name}={value}`" in page.split(f"## Method: {method}\n")[1].split("\n## ")[0]


def test_every_choice_of_transport_is_explained():
    page = (ROOT / "docs" / "transport.md").read_text(encoding="utf-8")
    for name, field in TransportSettings.model_fields.items():
        assert f"`{name}`" in page or f"{name}=" in page, name
        for choice in get_args(field.annotation) if get_origin(field.annotation) is Literal else ():
            assert f"`{choice}`" in page or f"{name}={choice}" in page, f"{name}={choice}"


def test_stop_sentences_on_the_transport_page_are_those_of_the_program():
    page = (ROOT / "docs" / "transport.md").read_text(encoding="utf-8")
    rows = page.split("## Why it stopped")[1].split("## ")[0]
    healthy = {"ess": 0.5, "w_positive": 1.0}
    for broken in ({"ess": 0.012}, {"w_positive": 0.002}, {"gap": math.nan}):
        with pytest.raises(TrainingError) as said:
            refuse_collapse(healthy | broken, epoch=3, min_ess=0.02)
        words = str(said.value).split(" in epoch ")[0]
        assert f"| {words} in epoch" in rows
