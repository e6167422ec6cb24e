"""The page of a table of the paper: our numbers and the paper's, marks, claims, and how it was made."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tiny_paper
from chromium import needs_browser, render
from tiny_paper import SWEPT, TINY, config
from towpath.errors import ArtifactError
from towpath.experiments.paper.published import PUBLISHED
from towpath.experiments.paper.record import read_record, write_record
from towpath.experiments.paper.run import fit_all, plan
from towpath.reports.paper_page import ExperimentResults, read_results, write_results
from towpath.reports.paper_tables import lift_table, main_table
from towpath.reports.tables import Ranked

FOLDER, SWEEP_FOLDER = "tiny-tiny-simulation", "tiny-sweep-tiny"  # experiment and data


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A finished run of a tiny table and a tiny sweep."""
    monkeypatch = pytest.MonkeyPatch()
    published = {column: PUBLISHED["ml-1m"][column] for column in ("MCF", "DT-MCF")}
    monkeypatch.setitem(PUBLISHED, "tiny", published)
    with tiny_paper.registered(tmp_path_factory.mktemp("paper")) as folder:
        for one in (TINY, SWEPT):
            made = plan(one, config(folder, command=f"towpath paper run {one.name} --out DIR"))
            made.write(folder / "out")
            fit_all(made.jobs, 1)
        yield folder / "out"
    monkeypatch.undo()


@pytest.fixture(scope="module")
def results(out: Path) -> ExperimentResults:
    """The results of the table, written in every form."""
    found = read_results(out / FOLDER)
    write_results(found, out / FOLDER)
    return found


def test_all_forms_are_written(results: ExperimentResults, out: Path) -> None:
    others = [
        path for path in (out / FOLDER).iterdir() if path.name not in ("index.html", "run.json", ".lock")
    ]
    html = (out / FOLDER / "index.html").read_text()
    assert "<h1>A tiny table</h1>" in html
    assert html.count("<svg") == 2 + 1 + 4  # weights by label and score; by exposure; time in both benchmarks
    assert 'src="http' not in html
    assert "<script" not in html
    assert {path.suffix for path in others} == {".md", ".tex", ".json", ".csv", ".svg"}
    text = (out / FOLDER / "results.md").read_text()
    assert "60.27 ± 0.15" in text  # what the paper prints, next to ours
    assert "towpath paper run tiny --out DIR" in text
    assert "10 of 10 fits are finished" in text
    assert "Made for tests." in text
    latex = (out / FOLDER / "results.tex").read_text()
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 8
    assert r"\textbf{" in latex


@needs_browser
@pytest.mark.parametrize("name", [FOLDER, SWEEP_FOLDER])
def test_a_browser_shows_the_page_without_complaint(out: Path, tmp_path: Path, name: str) -> None:
    found = read_results(out / name)
    write_results(found, out / name)
    seen = render(out / name / "index.html", tmp_path, 1200)
    assert seen.console() == []
    assert seen.dom.count("<svg") == len(list((out / name).glob("*.svg"))) > 0
    assert seen.dom.count("<table") == len(list((out / name).glob("*.csv"))) > 0
    assert len(seen.picture) > 20_000  # an empty page is a few thousand bytes


def test_the_numbers_are_those_of_the_runs(results: ExperimentResults, out: Path) -> None:
    found = results.benchmarks[0]
    measure = found.facts.measures(10)[1]
    hits = [found.run("MCF", seed).evaluations[2].per_user["hit"].mean() for seed in (0, 1)]
    assert found.mean("MCF", measure).mean == pytest.approx(100 * sum(hits) / 2)
    table = main_table(found, found.columns)
    rows = {row[0]: row for row in table.rows}
    assert rows["MCF"][3].estimate.mean == pytest.approx(100 * sum(hits) / 2)
    with (out / FOLDER / "table-1.csv").open() as file:
        written = {row["method"]: row for row in csv.DictReader(file)}
    assert float(written["MCF"]["Hit@10 (paper)"]) == pytest.approx(rows["MCF"][3].estimate.mean)
    assert float(written["DT-MCF"]["NDCG@10 in the paper"]) == 32.83
    kept = json.loads((out / FOLDER / "results.json").read_text())
    assert kept["benchmarks"]["tiny"]["columns"]["MCF"]["Hit@10 (paper)"] == pytest.approx(
        [100 * h for h in hits]
    )


def test_the_best_and_the_second_best_of_every_measure_are_marked(results: ExperimentResults) -> None:
    for found in results.benchmarks:
        table = main_table(found, found.columns)
        for column in (1, 3, 5):
            cells = [row[column] for row in table.rows]
            assert all(isinstance(cell, Ranked) for cell in cells)
            ranked = sorted(cells, key=lambda cell: -cell.estimate.mean)
            assert [cell.place for cell in ranked] == [1, 2, 0]


def test_every_claim_is_evaluated_where_it_speaks(results: ExperimentResults) -> None:
    said = {(verdict.claim, verdict.benchmark) for verdict in results.verdicts}
    assert ("MCF is better than Pop", "Tiny") in said
    assert ("DT-MCF: weights are larger on positives", "Tiny") in said
    assert ("DT-MCF: on negatives, weights rise with exposure", "Tiny simulation") in said
    assert ("DT-MCF: on negatives, weights rise with exposure", "Tiny") not in said


def test_relevance_in_a_simulation_is_a_sum_and_its_best_is_said(results: ExperimentResults) -> None:
    simulated = results.benchmarks[1]
    rel = simulated.facts.measures(10)[0]
    assert 0 < simulated.mean("Pop", rel).mean < simulated.facts.best < 10
    assert "The best possible Rel@10 is" in main_table(simulated, simulated.columns).caption
    assert "weighted_hit" in {measure.metric for measure in simulated.facts.further(10)}


def test_a_sweep_is_a_table_and_a_figure_for_each_measure(out: Path) -> None:
    swept = read_results(out / SWEEP_FOLDER)
    page, *_ = write_results(swept, out / SWEEP_FOLDER)
    assert page.read_text().count("<svg") == 6  # Rel and full Hit are one
    assert {verdict.claim for verdict in swept.verdicts} == {"More is better", "It matters little"}
    assert "| 0.0     |" in (out / SWEEP_FOLDER / "results.md").read_text()


def test_what_is_not_finished_is_left_out_and_said(out: Path, tmp_path: Path) -> None:
    record = read_record(out / FOLDER)
    gone = tuple(replace(run, result="gone") if run.column == "DT-MCF" else run for run in record.runs)
    write_record(replace(record, runs=gone), out / "unfinished")
    left = read_results(out / "unfinished")
    assert left.benchmarks[0].columns == ["Pop", "MCF"]
    page, *_ = write_results(left, tmp_path)
    assert "6 of 10 fits are finished" in page.read_text()
    assert "DT-MCF is better" not in page.read_text()


def test_lifts_are_relative_to_the_control(results: ExperimentResults) -> None:
    found = results.benchmarks[0]
    renamed = {
        ("D&W" if c == "MCF" else "DT-D&W" if c == "DT-MCF" else c, s): d for (c, s), d in found.runs.items()
    }
    shown = replace(found, runs=renamed, settings={"D&W": {}, "DT-D&W": {}}, once=frozenset(), _known={})
    table = lift_table(shown, replace(TINY, methods={"D&W": TINY.methods["MCF"]}))
    assert table is not None
    measure = replace(found.facts.further(10)[1])
    base, other = (found.mean(column, measure).mean for column in ("MCF", "DT-MCF"))
    assert table.rows[0][3].mean == pytest.approx(100 * (other / base - 1))
    assert table.rows[0][4] == 0.09


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ArtifactError, match=r"run\.json cannot be parsed"):
        read_results(tmp_path)
