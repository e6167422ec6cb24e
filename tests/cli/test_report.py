"""towpath report on whole runs, half runs and broken ones."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from chromium import needs_browser, render
from event_files import write_events
from towpath.cli import main
from towpath.files import list_checksums

QUICK_GAME = ["--method", "transport", "--set", "epochs=3", "--set", "patience=9", "--set", "embedding_dim=4"]
QUICK_GAME += ["--set", "batch_size=512", "--set", "hard_negative_depth=40"]


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of transport, next to its data: enough items for every protocol."""
    folder = tmp_path_factory.mktemp("report")
    events = write_events(folder / "events.csv", users=200, items=150)
    assert main(["fit", str(events), *QUICK_GAME, "--out", str(folder / "game"), "--quiet"]) == 0
    return folder / "game"


@pytest.fixture
def copy(game: Path, tmp_path: Path) -> Path:
    """A copy of the run that a test may damage."""
    return Path(shutil.copytree(game, tmp_path / "game"))


@pytest.fixture
def chartless(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without the extra `report`: drawing takes most of the time."""
    monkeypatch.setattr("towpath.reports.figures.find_spec", lambda name: None)


def text_of(page: Path) -> str:
    """What a reader sees: no tags, plain spaces."""
    html = page.read_text(encoding="utf-8").split("<body")[1]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html).replace("\xa0", " ").replace("&#39;", "'"))


def test_the_page_of_a_game_has_every_part(towpath, game: Path, tmp_path: Path) -> None:
    answer = towpath("report", game, "--out", tmp_path / "page.html", "--json")
    assert answer.json["missing"] == []
    html, text = (tmp_path / "page.html").read_text(encoding="utf-8"), text_of(tmp_path / "page.html")
    for heading in ("careful about", "The data", "How training went", "How good it is", "What it recommends"):
        assert f"{heading}</h2>" in html
    assert "What the weighting learned</h2>" in html
    assert "repeats: first" in text
    assert "no interaction, would be shown" in text
    assert f"{100 * answer.json['metrics']['this run']['full']['hit']:.1f} (" in text
    assert not re.search(r'(href|src)="(?!#)|url\(|@import|<script', html.replace('xlink:href="#', ""))


@pytest.mark.usefixtures("chartless")
def test_the_numbers_are_those_of_towpath_evaluate(towpath, game: Path) -> None:
    told = towpath("report", game, "--no-check", "--json").json
    assert told["page"] == str(game / "report.html")
    assert (game / "report.html").is_file()
    for protocol in ("full", "sampled"):
        evaluated = towpath("evaluate", game, "--protocol", protocol, "--json").json["metrics"]
        assert told["metrics"]["this run"][protocol] == evaluated


@pytest.mark.usefixtures("chartless")
def test_a_protocol_that_the_data_do_not_allow_is_named(towpath, finished: Path, tmp_path: Path) -> None:
    """80 items cannot give 100 negatives."""
    told = towpath("report", finished, "--out", tmp_path / "page.html", "--json").json
    assert any("the sampled protocol: " in line and "100 items" in line for line in told["missing"])
    assert "What is missing" in text_of(tmp_path / "page.html")


def test_another_run_stands_next_to_it(towpath, finished: Path, finished_ease: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    told = towpath("report", finished, "--against", finished_ease, "--out", page, "--json").json
    assert list(told["metrics"]) == ["this run", "popularity", "ease"]
    assert "this run − ease, full" in text_of(page)
    found = towpath("diagnose", finished, "--out", tmp_path / "diagnosis.html", "--json").json
    assert told["evidence"]["models"]["this run"] == {
        **found["evidence"],
        "expected_clicks": found["expected_clicks"],
    }
    assert any("slots in which ease and this run differ" in warning for warning in told["warnings"])
    assert "What the log can vouch for" in text_of(page)
    assert "this run and ease" in text_of(page)


@pytest.mark.usefixtures("chartless")
def test_a_run_on_another_split_is_refused(towpath, finished: Path, events: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    fit = ["fit", events, "--model", "popularity", "--split", "random", "--out", other, "--quiet"]
    assert towpath(*fit).code == 0
    sentence = towpath("report", finished, "--against", other, "--out", tmp_path / "p.html").sentence()
    assert "another split" in sentence
    assert "same data and split" in sentence
    assert not (tmp_path / "p.html").exists()


@pytest.mark.usefixtures("chartless")
def test_the_command_on_the_page_makes_the_run_again(towpath, events: Path, tmp_path: Path) -> None:
    run = tmp_path / "a run"
    fit = ["fit", events, "--model", "ease", "--set", "ridge=33", "--split", "random", "--split-seed", 4]
    assert towpath(*fit, "--min-per-item", 2, "--seed", 3, "--out", run, "--quiet").code == 0
    assert towpath("report", run, "--quiet").code == 0
    html = (run / "report.html").read_text(encoding="utf-8")
    command = re.search(r"<pre>(towpath fit .*?)</pre>", html, re.S)[1].replace("&#39;", "'")
    words = shlex.split(command)
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert towpath(*words[1:], "--quiet").code == 0
    old, new = (json.loads((f / "run.json").read_text()) for f in (run, tmp_path / "again"))
    assert old == new
    models = [(f / "artifact" / "model.safetensors").read_bytes() for f in (run, tmp_path / "again")]
    assert models[0] == models[1]


def test_what_is_no_run_is_said(towpath, finished: Path, tmp_path: Path) -> None:
    assert "There is no run at" in towpath("report", tmp_path / "nowhere").sentence()
    assert "is no run folder" in towpath("report", tmp_path).sentence()
    assert "without the data" in towpath("report", finished / "artifact").sentence()
    assert "has not finished" in towpath("report", finished, "--against", half(finished, tmp_path)).sentence()


def half(run: Path, folder: Path) -> Path:
    """The run as it was before its last step."""
    shutil.copytree(run, folder / "half")
    shutil.rmtree(folder / "half" / "artifact")
    return folder / "half"


@pytest.mark.parametrize("history", ["history.jsonl", "checkpoint"])
def test_a_half_finished_run_shows_its_curves(towpath, game: Path, tmp_path: Path, history: str) -> None:
    run = half(game, tmp_path)
    if history == "checkpoint":
        (run / "history.jsonl").unlink()
    told = towpath("report", run, "--json").json
    assert "has not finished" in told["warnings"][0]
    assert told["metrics"] == {}
    assert any("--resume" in line for line in told["missing"])
    text = text_of(run / "report.html")
    assert "6 epochs took" in text
    assert "best so far" in text
    assert "How far the weighted training pairs are" in text


def test_without_its_split_the_page_says_what_is_missing(towpath, copy: Path) -> None:
    shutil.rmtree(copy / "split")
    told = towpath("report", copy, "--json").json
    assert any(line.startswith("the parts of the data") for line in told["missing"])
    text = text_of(copy / "report.html")
    assert "6 epochs took" in text
    assert "What the weighting learned" not in text
    assert "repeats: first" in text  # what was dropped is kept with the run


@pytest.mark.usefixtures("chartless")
def test_a_damaged_model_is_no_model(towpath, copy: Path) -> None:
    model = copy / "artifact" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1] + b"x")
    told = towpath("report", copy, "--json").json
    assert any("does not match its checksum" in line for line in told["missing"])
    assert told["metrics"] == {}


@pytest.mark.usefixtures("chartless")
def test_data_that_are_gone_or_changed_are_said(towpath, copy: Path, game: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    shutil.copy(game.parent / "events.csv", events)
    record = json.loads((copy / "run.json").read_text())
    record["data"]["source"] = str(events)
    (copy / "run.json").write_text(json.dumps(record))
    list_checksums(copy)
    same = towpath("report", copy, "--json").json
    assert not any("trained on" in line for line in same["warnings"])
    assert same["missing"] == []
    events.write_text(events.read_text() + "u0,i149,5,99\nu1,another,5,99\n")
    changed = towpath("report", copy, "--json").json["warnings"][0]
    assert "are not what this run was trained on" in changed
    assert "events and the fingerprint" in changed
    events.unlink()
    gone = towpath("report", copy, "--json").json
    assert [line[:52] for line in gone["missing"]] == [
        "whether the data are still the same: There is no file"[:52]
    ]
    assert gone["metrics"]["this run"]["full"]
    assert "repeats: first" in text_of(copy / "report.html")


@pytest.mark.usefixtures("chartless")
def test_runs_that_kept_no_steps_are_read_again(towpath, copy: Path) -> None:
    record = json.loads((copy / "run.json").read_text())
    for key in ("steps", "notes"):
        del record["data"][key]
    (copy / "run.json").write_text(json.dumps(record))
    list_checksums(copy)
    assert towpath("report", copy, "--no-check", "--quiet").code == 0
    assert "step of cleaning" not in text_of(copy / "report.html")
    assert towpath("report", copy, "--quiet").code == 0
    assert "step of cleaning" in text_of(copy / "report.html")


def test_a_bad_place_is_said_before_the_work(towpath, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sentence = towpath("report", finished, "--out", tmp_path / "file" / "page.html").sentence()
    assert "is not a directory; choose another --out" in sentence


@needs_browser
@pytest.mark.parametrize("width", [1100, 500])
def test_a_browser_shows_the_page_without_complaint(towpath, game: Path, tmp_path: Path, width: int) -> None:
    page = tmp_path / "page.html"
    assert towpath("report", game, "--out", page, "--no-check", "--quiet").code == 0
    seen = render(page, tmp_path, width)
    assert seen.console() == []
    assert seen.picture.startswith(b"\x89PNG")
    assert len(seen.picture) > 20_000  # a blank page takes less
    assert seen.dom.count("<figure") == page.read_text(encoding="utf-8").count("<figure")
    assert seen.dom.count("<svg") >= 8
    assert seen.dom.count("<table") >= 7
