"""towpath paper: listed, run, stopped, rendered, and refused in one sentence."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tiny_paper


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with tiny_paper.registered(tmp_path) as registered:
        yield registered


def test_the_list_names_every_table_and_figure(towpath) -> None:
    listed = {one["name"]: one for one in towpath("paper", "list", "--json").json["experiments"]}
    assert {"table-1", "figure-2a", "table-wide-deep", "figure-efficiency"} <= set(listed)
    assert listed["table-1"]["data"] == ["ml-1m", "ml-1m-simulation", "lastfm-2k", "goodreads"]
    assert listed["table-1"]["fits"] == 3 * (2 + 10 * 10) + 2 + 8 * 10  # two need no seed


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
