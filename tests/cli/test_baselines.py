"""Methods that divide by propensities on the command line, and the curve over their floor."""

import csv
from pathlib import Path

import numpy as np
import pytest

QUICK = ["--set", "epochs=2", "--set", "embedding_dim=4", "--set", "batch_size=512"]


@pytest.fixture
def logged(events: Path, tmp_path: Path) -> Path:
    """The events with a chance of having been shown, in a column whose name nobody would guess."""
    path = tmp_path / "logged.csv"
    chances = np.random.default_rng(0).uniform(0.1, 1, size=10_000)
    with events.open(newline="") as source, path.open("w", newline="") as target:
        rows = csv.reader(source)
        out = csv.writer(target)
        out.writerow([*next(rows), "chance"])
        out.writerows([*row, f"{chance:.3f}"] for row, chance in zip(rows, chances, strict=False))
    return path


@pytest.mark.parametrize("method", ["ipw", "doubly-robust"])
def test_given_propensities_come_from_the_named_column(towpath, logged: Path, tmp_path: Path, method) -> None:
    asked = [
        "fit",
        logged,
        "--method",
        method,
        "--set",
        "propensity=given",
        *QUICK,
        "--out",
        tmp_path / "run",
    ]
    told = towpath(*asked, "--propensity-col", "chance", "--json").json
    assert (told["method"], told["settings"]["propensity"]) == (method, "given")
    assert towpath("evaluate", tmp_path / "run", "--protocol", "full", "--json").json["users"] == 300


@pytest.mark.parametrize("method", ["ipw", "doubly-robust"])
def test_propensities_that_are_not_there_are_not_made_up(
    towpath, events: Path, tmp_path: Path, method
) -> None:
    asked = ["fit", events, "--method", method, "--set", "propensity=given", "--out", tmp_path / "run"]
    sentence = towpath(*asked, *QUICK).sentence()
    assert "3,000 training interactions, but the data have no propensity column" in sentence


@pytest.mark.parametrize("method", ["ipw", "doubly-robust"])
def test_a_loss_over_whole_lists_is_refused(towpath, events: Path, tmp_path: Path, method) -> None:
    asked = ["fit", events, "--method", method, "--set", "loss=softmax", "--out", tmp_path / "run"]
    assert "softmax" in towpath(*asked).sentence()


def test_a_curve_is_drawn_and_goes_on_where_it_stopped(towpath, events: Path, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    asked = ["sweep", events, "--method", "ipw", "--setting", "floor", "--reference", "plain", "--seeds", 1]
    asked += ["--protocol", "full", *QUICK, "--out", out, "--json"]
    told = towpath(*asked, "--values", ".2,1").json
    assert told["values"] == [0.2, 1.0]
    hits = {row["label"]: row["mean"] for row in told["rows"] if row["metric"] == "ndcg"}
    assert hits["floor=1.0"] == hits["plain"]
    assert (out / "index.html").exists()
    assert len(list((out / "results").glob("*.parquet"))) == 3
    again = towpath(*asked, "--values", ".2,.5,1").json
    assert again["values"] == [0.2, 0.5, 1.0]
    assert len(list((out / "results").glob("*.parquet"))) == 4


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--setting", "flor", "--values", "0.1,1"], "did you mean 'floor'"),
        (["--setting", "floor", "--values", "0.1"], "at least two different values of floor"),
        (["--setting", "floor", "--values", "0.1,"], "--values takes different names"),
        (["--setting", "floor", "--values", "0.1,1", "--reference", "plan"], "did you mean 'plain'"),
        (
            ["--setting", "floor", "--values", "0.1,1", "--reference", "ipw"],
            "--reference takes different names",
        ),
        (["--setting", "floor", "--values", "0.1,1", "--protocol", "ful"], "did you mean 'full'"),
    ],
)
def test_a_curve_that_cannot_be_is_refused(towpath, events, tmp_path, asked, sentence) -> None:
    assert sentence in towpath("sweep", events, "--method", "ipw", *asked, "--out", tmp_path / "c").sentence()
    assert not (tmp_path / "c").exists()
