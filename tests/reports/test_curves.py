import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from towpath.evaluation.comparison import Comparison, MetricSummary
from towpath.experiments.sweep import SweepResult, Value
from towpath.methods.recipe import Recipe
from towpath.reports import curves, figures
from towpath.reports.curves import draw_sweep
from towpath.reports.page import to_html
from towpath.reports.sweep_page import sweep_page, sweep_point_table, write_sweep
from towpath.stats.spread import mean_and_deviation

needs_charts = pytest.mark.skipif(not figures.charts_available(), reason="needs the extra `report`")
TEXT = "{http://www.w3.org/2000/svg}text"


def curve_over(setting: str, values: tuple[Value, ...], sd: float | None = 0.01) -> SweepResult:
    seeds = 1 if sd is None else 3
    labels = [*(f"{setting}={value}" for value in values), "plain"]
    rows = tuple(
        MetricSummary(label, protocol, metric, mean_and_deviation(base + 0.02 * place, sd, n=seeds), sd)
        for protocol, base in (("full", 0.1), ("sampled", 0.6))
        for metric in ("hit", "ndcg")
        for place, label in enumerate(labels)
    )
    return SweepResult(
        Recipe("mf", "ipw"), setting, values, ("plain",), Comparison("test", 10, 943, seeds, rows, ())
    )


def texts_of(svg: str | None) -> list[str]:
    assert svg is not None
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(TEXT)]


@needs_charts
def test_a_panel_for_each_protocol_with_axes_values_and_reference() -> None:
    texts = texts_of(draw_sweep(curve_over("floor", (0.01, 0.1, 0.5)), "hit", "Hit").svg)
    for word in ("full", "sampled", "0.01", "0.1", "0.5"):
        assert word in texts
    assert texts.count("plain") == 2
    assert texts.count("Hit@10 × 100") == 2
    assert texts.count("floor") == 2


def places(svg: str | None, wanted: set[str]) -> dict[str, float]:
    """How far to the right the words of the first panel stand."""
    assert svg is not None
    found: dict[str, float] = {}
    for node in ElementTree.fromstring(svg).iter(TEXT):
        where = re.search(r"translate\(([-\d.]+)", node.get("transform", ""))
        if node.text in wanted and where and node.text not in found:
            found[node.text] = float(where[1])
    return found


@needs_charts
def test_values_far_apart_stand_in_equal_ratios_and_near_ones_in_equal_steps() -> None:
    far = places(draw_sweep(curve_over("floor", (0.01, 0.1, 1.0)), "hit", "Hit").svg, {"0.01", "0.1", "1"})
    assert far["0.1"] - far["0.01"] == pytest.approx(far["1"] - far["0.1"], abs=1)
    near = places(draw_sweep(curve_over("power", (0.0, 0.5, 1.0)), "hit", "Hit").svg, {"0", "0.5", "1"})
    assert near["0.5"] - near["0"] == pytest.approx(near["1"] - near["0.5"], abs=1)


@needs_charts
def test_values_are_written_out() -> None:
    texts = texts_of(draw_sweep(curve_over("steps_w", (1, 5, 10)), "hit", "Hit").svg)
    assert {"1", "5", "10"} <= set(texts)
    assert not any("e+" in text for text in texts)


def test_names_are_values_too_and_one_seed_has_no_spread() -> None:
    drawn = draw_sweep(curve_over("variant", ("weighted", "squared"), sd=None), "hit", "Hit")
    assert {"weighted", "squared"} <= set(texts_of(drawn.svg))
    assert drawn.caption.startswith("Dots are from one seed")
    assert sweep_point_table(curve_over("variant", ("weighted",), sd=None)).shown()[0][1] == "10.00"


def test_the_table_has_a_row_for_each_value_and_reference() -> None:
    table = sweep_point_table(curve_over("floor", (0.01, 0.1)))
    assert table.columns == ("floor", "full Hit@10", "full NDCG@10", "sampled Hit@10", "sampled NDCG@10")
    assert [row[0] for row in table.shown()] == ["0.01", "0.1", "plain"]
    assert table.shown()[1][1] == "12.00 ± 1.00"
    assert table.shown()[2][3] == "64.00"


def test_the_page_says_what_was_done() -> None:
    page = to_html(sweep_page(curve_over("floor", (0.01, 0.1)), "ml-100k"))
    assert "mf was trained by the method ipw on ml-100k with 2 values of floor and 3 seeds each" in page
    assert "943 users" in page


@needs_charts
def test_what_is_written_stands_by_itself(tmp_path: Path) -> None:
    files = write_sweep(curve_over("floor", (0.01, 0.1)), "ml-100k", tmp_path / "out")
    assert [path.name for path in files] == ["index.html", "sweep.json", "sweep.csv", "hit.svg", "ndcg.svg"]
    assert json.loads(files[1].read_text())["setting"] == "floor"
    svg = files[3].read_text()
    assert "var(" not in svg
    assert "currentColor" not in svg
    assert "var(--accent)" in files[0].read_text()


def test_without_the_extra_there_are_numbers_but_no_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "charts_available", lambda: False)
    files = write_sweep(curve_over("floor", (0.01, 0.1)), "ml-100k", tmp_path)
    assert [path.name for path in files] == ["index.html", "sweep.json", "sweep.csv"]
