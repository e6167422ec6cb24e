"""towpath paper: listed, run, stopped, rendered, and refused in one sentence."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import tiny_paper
from towpath.experiments.paper import searches


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with tiny_paper.registered(tmp_path) as registered:
        yield registered


def test_the_list_names_every_table_and_figure(towpath) -> None:
    listed = {one["name"]: one for one in towpath("paper", "list", "--json").json["experiments"]}
    assert {"table-1", "figure-2a", "table-wide-deep", "figure-efficiency"} <= set(listed)
    assert listed["table-1"]["data"] == ["ml-1m", "ml-1m-simulation", "lastfm-2k", "goodreads"]
    ten, five, three = 9, 4, 2  # columns by their seeds; two more need none, and four need an order of clicks
    fits = 3 * (2 + 10 * ten + 5 * five + 3 * three) + 2 + 10 * ten + 5 + 3
    assert listed["table-1"]["fits"] == fits


def test_run_again_and_render(towpath, folder: Path) -> None:
    wanted = ("paper", "run", "tiny", "--data", "tiny", "--column", "MCF", "--column", "Pop", "--seeds", "2")
    words = (*wanted, "--set", "epochs=1", "--out", folder / "out")
    first = towpath(*words)
    assert first.code == 0, first.err
    assert first.err.count(": fitted") == 3
    assert "MCF is better than Pop" in first.out
    again = towpath(*words)
    assert again.err.count(": stored") == 3
    assert again.out == first.out
    page = folder / "out" / "tiny" / "index.html"
    before = page.read_bytes()
    page.unlink()
    shown = towpath("paper", "render", folder / "out", "--json").json["experiments"]
    assert [one["experiment"] for one in shown] == ["tiny"]
    assert shown[0]["settings"]["tiny"]["MCF"]["settings"]["epochs"] == 1
    assert page.read_bytes() == before
    assert "--set epochs=1 --jobs 1 --data-dir DATA --out DIR" in page.read_text()
    assert str(folder) not in page.read_text()  # places are the reader's own


def test_plan_says_what_is_left_and_reproduce_finds_it_again(towpath, folder: Path) -> None:
    words = ("tiny", "--column", "MCF", "--column", "Pop", "--set", "epochs=1", "--out", folder / "out")
    before = towpath("paper", "plan", *words, "--json").json
    assert (before["fits"], before["stored"], before["missing"]) == (6, 0, 6)
    assert [one["data"] for one in before["experiments"]] == ["tiny", "tiny-simulation"]
    assert before["hours"] > 0
    assert before["experiments"][0]["measured"] == 0
    assert towpath("paper", "run", *words, "--data", "tiny").code == 0
    after = towpath("paper", "plan", *words, "--jobs", "2", "--json").json
    assert (after["fits"], after["stored"], after["missing"]) == (6, 3, 3)
    assert [one["hours"] == 0 for one in after["experiments"]] == [True, False]
    assert after["wall_hours"] == after["hours"] / 2
    more = towpath("paper", "plan", *words, "--data", "tiny", "--seeds", "3", "--json").json
    assert (more["missing"], more["experiments"][0]["measured"]) == (1, 1)  # timed with other seeds
    assert 0 < more["hours"] < 0.01

    again = ("paper", "reproduce", "tiny/MCF", "--results", folder / "out", "--out", folder / "again")
    found = towpath(*again, "--json").json
    assert found["inside"]
    published = json.loads((folder / "out" / "tiny" / "results.json").read_text())
    values = published["benchmarks"]["tiny"]["columns"]["MCF"]
    assert {one["measure"]: one["value"] for one in found["measures"]} == {n: v[0] for n, v in values.items()}
    assert "tiny/MCF, seed 0, falls into the published intervals" in towpath(*again).out
    sentence = towpath(*again[:2], "tiny/MFC", *again[3:]).sentence()
    assert "There is no column of this table 'MFC'; did you mean 'MCF'" in sentence
    sentence = towpath(*again[:2], "nowhere/MCF", *again[3:]).sentence()
    assert "A cell is called FOLDER/COLUMN, such as table-1-ml-1m/DT-MCF" in sentence


def test_tune_then_run_with_what_was_found(towpath, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "_BY_METHOD", {"plain": {"l2": (0.5,)}})
    words = ("tiny", "--data", "tiny", "--column", "MCF", "--out", folder / "out")
    before = towpath("paper", "plan", *words, "--json").json
    assert [(one["experiment"], one["stored"]) for one in before["searches"]] == [("tune", 0)]
    assert before["search_hours"] > 0
    found = towpath("paper", "tune", *words, "--json").json["searches"]
    assert [(one["data"], one["column"]) for one in found] == [("tiny", "MCF")]
    assert towpath("paper", "tune", *words).out.count("l2=") == 1  # nothing is searched again
    assert towpath("paper", "plan", *words, "--json").json["search_hours"] == 0
    assert towpath("paper", "run", *words).code == 0
    record = json.loads((folder / "out" / "tiny" / "results.json").read_text())
    assert record["settings"]["tiny"]["MCF"]["settings"]["l2"] == found[0]["chosen"]["l2"]
    assert "MCF on tiny: tuned on this split" in (folder / "out" / "tiny" / "results.md").read_text()


def test_results_of_other_code_are_used_where_that_is_asked_for(towpath, folder: Path) -> None:
    words = ("tiny", "--data", "tiny", "--column", "MCF", "--set", "epochs=1", "--out", folder / "out")
    assert towpath("paper", "run", *words, "--code", "old").code == 0
    fresh, kept = (towpath("paper", "plan", *words, *more, "--json").json for more in ((), ("--any-code",)))
    assert (fresh["stored"], fresh["earlier"]) == (0, 0)
    assert (kept["stored"], kept["earlier"], kept["hours"]) == (2, 2, 0)
    again = towpath("paper", "run", *words, "--any-code")
    assert again.err.count(": stored") == 2
    assert json.loads((folder / "out" / "tiny" / "results.json").read_text())["codes"] == {"old": 2}


def test_the_plan_fits_a_terminal_of_80_columns(
    towpath, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = "latent-exploration-100"
    shown = towpath("paper", "plan", "figure-overlap", "--data", long, "--out", folder / "out").out
    (line,) = [line for line in shown.splitlines() if f"figure-overlap-{long}" in line]
    assert len(line.rstrip()) <= 80
    assert line.split()[1:4] == ["26", "0", "0"]


def test_another_number_or_other_data_are_told(towpath, folder: Path) -> None:
    words = ("tiny", "--data", "tiny", "--column", "Pop", "--out", folder / "out")
    assert towpath("paper", "run", *words).code == 0
    path = folder / "out" / "tiny" / "results.json"
    published = json.loads(path.read_text())
    again = ("paper", "reproduce", "tiny/Pop", "--results", folder / "out", "--out", folder / "again")
    assert towpath(*again, "--json").json["inside"]
    published["arenas"]["tiny"]["columns"]["Pop"]["Hit@10 (full)"][0] += 1
    path.write_text(json.dumps(published))
    assert "Pop, seed 0, does not fall into the published intervals" in towpath(*again).out
    published["arenas"]["tiny"]["fingerprint"] = "another"
    path.write_text(json.dumps(published))
    assert "tiny is not what the cell was computed on" in towpath(*again).sentence()


def test_a_simulated_world_that_differs_is_told_and_computed_anyway(towpath, folder: Path) -> None:
    words = ("tiny", "--data", "tiny-simulation", "--column", "Pop", "--out", folder / "out")
    assert towpath("paper", "run", *words).code == 0
    (place,) = (folder / "out").glob("tiny-*simulation")
    path, record = place / "results.json", place / "run.json"
    cell = f"{place.name}/Pop"
    again = ("paper", "reproduce", cell, "--results", folder / "out", "--out", folder / "again", "--json")
    fingerprint = json.loads(path.read_text())["arenas"]["tiny-simulation"]["fingerprint"]
    for name in (path, record):  # as if the last digit of the true relevance were another
        name.write_text(name.read_text().replace(fingerprint, "0" * 64))
    found = towpath(*again).json
    assert found["inside"]
    assert found["note"] == ""
    facts = json.loads(record.read_text())
    facts["benchmarks"][0]["events"] += 14
    record.write_text(json.dumps(facts))
    events = facts["benchmarks"][0]["events"]
    note = towpath(*again).json["note"]
    assert f"it has {events - 14:,} events, and the published one {events:,}" in note
    assert note in " ".join(towpath(*again[:-1]).err.split())
    record.unlink()
    assert f"it has {events - 14:,} events. The published intervals" in towpath(*again).json["note"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "table-2", "--out", "x"), "did you mean 'table-1'"),
        (
            ("run", "table-1", "--data", "ml-10m", "--out", "x"),
            "There is no data set of this experiment 'ml-10m'",
        ),
        (("run", "table-1", "--column", "MC", "--out", "x"), "did you mean 'MCF'"),
        (("run", "table-1", "--out", "x"), "ml-1m is not here, since no data directory was given"),
        (("render", "x"), "There is no run of an experiment in x"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    towpath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in towpath("paper", *words).sentence()
    assert not (tmp_path / "x").exists()
