"""towpath tune, and towpath compare with what it found."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.cli import main
from towpath.cli.options import parse_grid, parse_settings, set_words
from towpath.errors import ConfigError

QUICK = ["--set", "epochs=2", "--set", "embedding_dim=4", "--set", "batch_size=512"]
OF_MF = ["--set", "mf.epochs=2", "--set", "mf.embedding_dim=4", "--set", "mf.batch_size=512"]
GRID = ["--grid", "l2=0,0.1", "--grid", "learning_rate=0.01,0.05"]


@pytest.fixture(scope="module")
def search(events: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search for mf."""
    folder = tmp_path_factory.mktemp("tuned") / "mf"
    assert main(["tune", str(events), *QUICK, *GRID, "--out", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def search_ease(events: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search for ease."""
    folder = tmp_path_factory.mktemp("tuned") / "ease"
    assert (
        main(["tune", str(events), "--model", "ease", "--grid", "ridge=3,30", "--out", str(folder), "-q"])
        == 0
    )
    return folder


def test_machines_get_every_candidate_best_first(towpath, events: Path, search: Path) -> None:
    told = towpath("tune", events, *QUICK, *GRID, "--out", search, "--json").json
    assert (told["model"], told["method"], told["folder"]) == ("mf", "plain", str(search))
    hits = [candidate["hit"] for candidate in told["candidates"]]
    assert hits == sorted(hits, reverse=True)
    assert told["validation_hit"] == hits[0]
    assert told["settings"].items() >= {"epochs": 2, "embedding_dim": 4}.items()
    assert parse_settings(shlex.split(told["words"])[1::2]) == told["settings"]
    assert {path.name for path in search.iterdir()} == {
        "tune.json", "results", "trials.jsonl", "best.json", "trials.md",
    }  # fmt: skip
    rows = (search / "trials.md").read_text().splitlines()[4:]
    assert len(rows) == len(told["candidates"])
    assert any("| 0.0015 " in row for row in rows)  # as it is typed, not 0.001500
    record = json.loads((search / "tune.json").read_text())
    assert record["grid"]["l2"] == [0.0, 0.0015, 0.1]
    assert record["origin"]["split"] == "leave-last-two"


def test_a_budget_says_what_was_spent_and_how_to_go_on(
    towpath, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["tune", events, *QUICK, *GRID, "--set", "epochs=5", "--out", tmp_path / "search", "--budget"]
    with monkeypatch.context() as slow:
        slow.setattr("towpath.experiments.tune._seconds", lambda candidates: 90.0)
        little = towpath(*asked, "1")
    assert (
        "1.5 minutes of training and validation were spent, for a budget of 1; only the start" in little.err
    )
    assert "To continue the search, run again with a larger --budget." in little.err
    assert little.out.startswith("mf by plain: 1 candidate, one seed each")
    more = towpath(*asked, "100")
    assert "1 trial is stored in" in more.err
    assert "for a budget of 100: the whole grid was tried." in more.err
    assert more.out.startswith("mf by plain: 11 candidates (8 cut short), one seed each")
    assert "learning_rate=0.05 (cut short)" in more.out
    kept = towpath(*asked, "100", "--json").json["candidates"]
    assert {row["epochs"] for row in kept if row["cut_short"]} == {3}
    assert {row["epochs"] for row in kept if not row["cut_short"]} == {5}
    assert "| cut_short |" in (tmp_path / "search" / "trials.md").read_text(encoding="utf-8")


def test_people_see_trials_and_the_words_to_use(towpath, events: Path, tmp_path: Path) -> None:
    asked = ["tune", events, *QUICK, "--grid", "l2=0.1", "--out", tmp_path / "search"]
    answer = towpath(*asked)
    assert answer.code == 0
    assert "l2 0.1, seed 0: hit 0." in answer.err
    assert "At the end of the grid: l2" in answer.err
    assert "\nBest: --set epochs=2 --set embedding_dim=4 --set batch_size=512 --set l2=" in answer.out
    again = towpath(*asked)
    assert "2 trials are stored in" in again.err
    assert "seed 0: hit" not in again.err
    assert again.out == answer.out
    assert towpath(*asked, "--quiet").err == ""
    (use,) = (line.split("Use it: towpath ")[1] for line in answer.out.splitlines() if "Use it" in line)
    assert towpath(*shlex.split(use.replace("RUN", str(tmp_path / "run")))).code == 0
    fitted = json.loads((tmp_path / "run" / "artifact" / "manifest.json").read_text())
    best = json.loads((tmp_path / "search" / "best.json").read_text())
    assert fitted["metrics"]["validation_hit"] == best["validation_hit"]


def test_the_printed_commands_use_the_same_data_and_split(towpath, tmp_path: Path) -> None:
    rows = [f"u{u},i{(u * 7 + n * n) % 60},{1 + (u + n) % 5},{n}" for u in range(80) for n in range(14)]
    path = tmp_path / "my events.csv"
    path.write_text("\n".join(["who,what,stars,at", *rows]) + "\n")
    columns = ["--user-col", "who", "--item-col", "what", "--value-col", "stars", "--time-col", "at"]
    cleaning = ["--min-rating", "2", "--repeats", "last", "--split", "random", "--split-seed", "3"]
    options = [*columns, *cleaning, "--test-share", "0.2"]
    search = ["tune", path, *QUICK, *options, "--grid", "l2=0.1", "--out", tmp_path / "search"]
    answer = towpath(*search)
    assert answer.code == 0, answer.err
    best = json.loads((tmp_path / "search" / "best.json").read_text())
    first, second = (line.strip() for line in answer.out.splitlines() if "towpath " in line)
    use = shlex.split(first.removeprefix("Use it: towpath ").replace("RUN", str(tmp_path / "run")))
    assert towpath(*use).code == 0
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["data"]["fingerprint"] == best["fingerprint"]
    assert run["recipe"]["settings"].items() >= best["settings"].items()
    compared = towpath(*shlex.split(second.removeprefix("towpath ")), "--seeds", 1)
    assert compared.code == 0, compared.err
    assert "were chosen on other data" not in compared.err
    shown = towpath(*search, "--json").json["commands"]
    assert (f"Use it: {shown['fit']}", shown["compare"]) == (first, second)


def test_a_search_of_an_earlier_version_is_one_sentence(towpath, search: Path, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    about = json.loads((search / "tune.json").read_text())
    (earlier / "tune.json").write_text(json.dumps(about | {"format": 1}))
    assert "has search format 1" in towpath("tune", "none.csv", *QUICK, "--out", earlier).sentence()


def test_a_trial_that_diverges_is_shown_as_failed(towpath, events: Path, tmp_path: Path) -> None:
    grid = ["--grid", "learning_rate=0.01,1e30", "--out", tmp_path / "search"]
    answer = towpath("tune", events, *QUICK, *grid)
    assert answer.code == 0
    assert "learning_rate 1e+30, seed 0: failed, " in answer.err
    assert "lower learning_rate" in (tmp_path / "search" / "trials.md").read_text()
    told = towpath("tune", events, *QUICK, *grid, "--json").json
    assert told["candidates"][-1]["hit"] is None
    assert told["settings"]["learning_rate"] != 1e30


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--grid", "l2"], "--grid takes KEY=VALUE,VALUE, each key once"),
        (["--grid", "l2=0,,1"], "--grid takes"),
        (["--grid", "l2=1", "--grid", "l2=2"], "--grid takes"),
        (["--grid", "l3=1"], "did you mean 'l2'"),
        (["--method", "transpot"], "did you mean 'transport'"),
        (["--metric", "hits"], "did you mean 'hit'"),
        (["--search", "optun"], "did you mean 'optuna'"),
        (["--model", "popularity"], "nothing to search for popularity by plain"),
        (["--trials", "0"], "trials"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_read(
    asked, sentence: str, towpath, tmp_path: Path
) -> None:
    said = towpath("tune", "no-such-file.csv", *asked, "--out", tmp_path / "search").sentence()
    assert sentence in said
    assert list(tmp_path.iterdir()) == []


def test_a_search_killed_at_its_first_write_is_made_again(towpath, tmp_path: Path) -> None:
    (tmp_path / ".tune.json.1-1.partial").write_text("{")
    assert "There is no file none.csv" in towpath("tune", "none.csv", "--out", tmp_path).sentence()


def test_a_folder_of_something_else_is_left_alone(towpath, events: Path, finished: Path) -> None:
    assert "has no tune.json" in towpath("tune", "none.csv", "--out", finished).sentence()
    assert "it has no folder results" in towpath("compare", "none.csv", "--out", finished).sentence()
    assert not (finished / "tune.json").exists()


def test_without_optuna_nothing_is_begun(towpath, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    sentence = towpath("tune", "none.csv", "--search", "optuna", "--out", tmp_path / "search").sentence()
    assert "pip install 'towpath[tune]'" in sentence


@pytest.mark.slow
def test_killed_in_the_middle_by_two_jobs_and_asked_again(towpath, events: Path, tmp_path: Path) -> None:
    slow = [
        "--set",
        "epochs=8",
        "--set",
        "patience=8",
        *QUICK[2:],
        "--grid",
        "l2=0,0.01,0.1,0.3",
        "--seeds",
        "2",
    ]
    asked = ["tune", events, *slow, "--out"]
    whole = towpath(*asked, tmp_path / "whole", "--json").json
    program = "from towpath.cli import main; raise SystemExit(main())"
    command = [
        sys.executable,
        "-c",
        program,
        *map(str, [*asked, tmp_path / "killed", "--jobs", 2, "--quiet"]),
    ]
    process = subprocess.Popen(command)
    lines = wait_for_lines(tmp_path / "killed" / "trials.jsonl", 2, process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "best.json").exists()
    again = towpath(*asked, tmp_path / "killed", "--json").json
    after = (tmp_path / "killed" / "trials.jsonl").read_text().splitlines()
    assert after[: len(lines)] == lines  # what was done is not done again
    for told in (whole, again):
        for candidate in told["candidates"]:
            candidate.pop("seconds")
        for key in ("folder", "commands"):  # they name the folder
            told.pop(key)
    assert again == whole


def wait_for_lines(path: Path, most: int, process: subprocess.Popen[bytes]) -> list[str]:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= most:
            return lines
        time.sleep(0.005)
    raise AssertionError(f"no {most} trials were kept; exit code {process.poll()}")


def test_ctrl_c_says_how_to_go_on(towpath, events: Path, tmp_path: Path, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("towpath.experiments.tune.fit", interrupted)
    monkeypatch.setattr("towpath.experiments.compare.fit", interrupted)
    for verb in ("tune", "compare"):
        answer = towpath(verb, events, "--quiet", "--out", tmp_path / verb)
        assert answer.code == 130
        assert (
            f"finished results are in {tmp_path / verb}. To resume, run the same command again" in answer.err
        )


def test_compare_uses_what_was_tuned_for_each(towpath, events: Path, search: Path, search_ease: Path) -> None:
    best = json.loads((search / "best.json").read_text())
    ridge = json.loads((search_ease / "best.json").read_text())["settings"]["ridge"]
    asked = ["compare", events, "--models", "mf,ease", "--on", "validation", "--seeds", 1, "--json"]
    told = towpath(*asked, "--tuned", search, "--tuned", search_ease).json
    hits = {row["model"]: row["mean"] for row in told["rows"] if row["metric"] == "hit"}
    assert hits["mf"] == best["validation_hit"]
    set_by_hand = [word for key, value in best["settings"].items() for word in ("--set", f"mf.{key}={value}")]
    by_hand = towpath(*asked, *set_by_hand).json
    mine = {row["model"]: row["mean"] for row in by_hand["rows"] if row["metric"] == "hit"}
    assert mine["mf"] == hits["mf"]
    explicit = towpath(*asked, "--set", f"ease.ridge={ridge}").json
    assert hits["ease"] == {r["model"]: r["mean"] for r in explicit["rows"] if r["metric"] == "hit"}["ease"]
    other = towpath(*asked, "--tuned", search, "--set", "mf.epochs=1").json  # what is set comes after
    assert other["rows"] != told["rows"]


def test_compare_refuses_what_was_tuned_for_others_or_twice(towpath, search: Path, tmp_path: Path) -> None:
    asked = ["compare", "none.csv", "--models", "ease"]
    assert "for mf by plain, which is not compared here" in towpath(*asked, "--tuned", search).sentence()
    twice = towpath("compare", "none.csv", "--tuned", search, "--tuned", search).sentence()
    assert "are about mf by plain; leave one of them out" in twice
    assert "There is no search at" in towpath(*asked, "--tuned", tmp_path).sentence()


def test_compare_says_if_settings_were_chosen_on_other_data(towpath, events: Path, search_ease: Path) -> None:
    asked = ["compare", events, "--models", "ease", "--seeds", 1, "--tuned", search_ease]
    assert "were chosen on other data" in towpath(*asked, "--split", "random").err
    assert "were chosen on other data" not in towpath(*asked).err


def test_closed_forms_stand_next_to_all_methods(towpath, events: Path) -> None:
    asked = ["compare", events, "--models", "mf,popularity", "--methods", "plain,transport", "--seeds", 1]
    told = towpath(*asked, *OF_MF, "--json").json
    rows = {row["label"]: (row["model"], row["method"]) for row in told["rows"]}
    assert rows == {
        "mf plain": ("mf", "plain"),
        "mf transport": ("mf", "transport"),
        "popularity": ("popularity", "plain"),
    }
    assert {gap["b"] for gap in told["differences"]} == {"mf plain"}
    alone = towpath("compare", events, "--models", "ease", "--methods", "transport")
    assert "ease has a closed form" in alone.sentence()


def test_a_comparison_is_kept_and_goes_on(towpath, events: Path, tmp_path: Path, monkeypatch) -> None:
    asked = ["compare", events, "--models", "mf,popularity", *OF_MF, "--out", tmp_path / "table", "--json"]
    first = towpath(*asked, "--seeds", 2).json
    assert json.loads((tmp_path / "table" / "comparison.json").read_text()) == first
    assert "| mf " in (tmp_path / "table" / "comparison.md").read_text()
    monkeypatch.setattr("towpath.experiments.compare.fit", lambda *_: pytest.fail("it was fitted again"))
    assert towpath(*asked, "--seeds", 2).json == first
    assert towpath(*asked, "--seeds", 1).json["seeds"] == 1


words = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
values = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none(), words
)


@given(st.dictionaries(st.from_regex(r"[a-z_]+", fullmatch=True), values))
def test_words_are_read_back_as_what_they_stand_for(settings: dict[str, object]) -> None:
    assert parse_settings(shlex.split(set_words(settings))[1::2]) == settings


def test_grids_are_read() -> None:
    assert parse_grid(["l2=0, 1e-3", "hidden=[64,32],[128]", "start=ease,random", "clip_norm=null,1"]) == {
        "l2": [0, 0.001],
        "hidden": [[64, 32], [128]],
        "start": ["ease", "random"],
        "clip_norm": [None, 1],
    }
    with pytest.raises(ConfigError, match="--grid takes"):
        parse_grid(["=1"])
