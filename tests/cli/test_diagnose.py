"""towpath diagnose: the contract of issue 18, the page, another log, bad input."""

from pathlib import Path

import pytest

from towpath.rng import Rng


def log_file(path: Path, rows: int = 600, propensity: str = ",0.0125", user: str = "u") -> Path:
    """Impressions of the users and items of the run, shown by a uniform policy."""
    rng = Rng(0).numpy("log")
    lines = [
        f"{user}{rng.integers(300)},i{rng.integers(80)},{int(rng.random() < 0.2)}{propensity}"
        for _ in range(rows)
    ]
    header = "user,item,click" + (",propensity" if propensity else "")
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def test_the_contract(towpath, finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = towpath("diagnose", finished, "--out", page, "--json").json
    assert set(found["evidence"]) == {"shown_to_user", "similar_users", "item_known", "never_shown"}
    assert sum(found["evidence"].values()) == pytest.approx(1)
    assert 0 <= found["expected_clicks"]["low"] <= found["expected_clicks"]["high"] <= 1
    assert found["ess_share"] is None  # a log of positives has no propensities
    assert "clicks alone" in found["warnings"][0]
    text = page.read_text()
    for heading in ("Evidence", "By user segment", "By item", "Distances", "Bounds"):
        assert f">{heading}<" in text
    assert "<script" not in text


def test_people_get_about_ten_lines(towpath, finished: Path, tmp_path: Path) -> None:
    answer = towpath("diagnose", finished, "--out", tmp_path / "page.html")
    assert answer.code == 0
    assert len([line for line in answer.out.splitlines() if line.strip()]) <= 10
    assert "clicks per slot" in answer.out
    assert "Written" in answer.err


def test_another_log_with_propensities(towpath, finished: Path, tmp_path: Path) -> None:
    log = log_file(tmp_path / "log.csv")
    page = tmp_path / "page.html"
    found = towpath("diagnose", finished, "--log", log, "--out", page, "--json").json
    assert found["rows"] == 600
    assert found["impressions_logged"]
    assert 0 < found["ess_share"] < 0.5
    assert ">Overlap<" in page.read_text()
    bare = towpath("diagnose", finished, "--log", log_file(log, propensity=""), "--out", page, "--json").json
    assert bare["ess_share"] is None
    assert bare["evidence"] == found["evidence"]


def test_rows_that_the_run_does_not_know_are_counted(towpath, finished: Path, tmp_path: Path) -> None:
    log = log_file(tmp_path / "log.csv", rows=100)
    log.write_text(log.read_text() + "stranger,i1,0,0.5\nu1,unheard,0,0.5\n")
    found = towpath("diagnose", finished, "--log", log, "--out", tmp_path / "p.html", "--json").json
    assert any(remark.startswith("2 of 102 rows") for remark in found["remarks"])


def test_bad_logs(towpath, finished: Path, tmp_path: Path) -> None:
    strangers = log_file(tmp_path / "a.csv", user="nobody")
    run = ["diagnose", finished, "--out", tmp_path / "p.html", "--log"]
    assert "None of the 600 rows" in towpath(*run, strangers).sentence()
    nobody = tmp_path / "b.csv"
    nobody.write_text("item,click,propensity\ni1,0,0.5\n")
    assert "--user-col" in towpath(*run, nobody).sentence()
    assert "There is no run" in towpath("diagnose", tmp_path / "none").sentence()
    assert not (tmp_path / "p.html").exists()


def test_a_run_on_impressions_says_where_on_the_dial_its_lists_stand(towpath, tmp_path: Path) -> None:
    log, run, page = log_file(tmp_path / "log.csv", rows=2000), tmp_path / "run", tmp_path / "page.html"
    quick = ["--set", "epochs=1", "--set", "embedding_dim=4"]
    fitted = towpath("fit", log, *quick, "--out", run, "--json").json
    assert set(fitted["dial"]) == {"shown_share", "likeness"}
    assert towpath("diagnose", run, "--out", page, "--json").json["dial"] == fitted["dial"]
    assert "likeness to the log" in towpath("diagnose", run, "--out", page).out
