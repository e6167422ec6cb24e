"""Every kind of bad input of issue 2: exit code 2, one sentence, nothing left behind."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from towpath.errors import ArtifactError
from towpath.files import list_checksums
from towpath.serving.run import Run

FIT = ["--model", "popularity"]


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def refused(towpath, tmp_path: Path, data: Path | str, *options: object) -> str:
    """The sentence with which towpath fit refuses, having left nothing behind."""
    before = sorted(tmp_path.rglob("*"))
    sentence = towpath("fit", data, *FIT, *options, "--out", tmp_path / "run", "--json").sentence()
    assert sorted(tmp_path.rglob("*")) == before
    return sentence


def test_a_misnamed_column(towpath, events: Path, tmp_path: Path) -> None:
    assert "user" in refused(towpath, tmp_path, events, "--user-col", "usr")


def test_a_missing_column(towpath, tmp_path: Path) -> None:
    data = written(tmp_path / "a.csv", "user,when", "a,1", "b,2")
    assert "item" in refused(towpath, tmp_path, data)


def test_no_rows_left_names_the_step(towpath, events: Path, tmp_path: Path) -> None:
    assert "min_rating 9" in refused(towpath, tmp_path, events, "--min-rating", 9)


def test_a_rating_that_is_no_number(towpath, tmp_path: Path) -> None:
    data = written(tmp_path / "a.csv", "user,item,rating", "a,x,5", "b,y,good", "a,y,1")
    assert "good" in refused(towpath, tmp_path, data)


def test_mixed_and_missing_times_for_a_time_split(towpath, tmp_path: Path) -> None:
    mixed = written(tmp_path / "a.csv", "user,item,time", "a,x,2020-01-01", "b,y,soon", "a,y,2020-01-02")
    assert "soon" in refused(towpath, tmp_path, mixed, "--split", "time")
    rows = [f"u{u},i{i},{'' if u == i == 0 else 10 * u + i}" for u in range(5) for i in range(5)]
    missing = written(tmp_path / "b.csv", "user,item,time", *rows)
    sentence = refused(towpath, tmp_path, missing, "--split", "time")
    assert "1 of 25" in sentence
    assert "--split random" in sentence
    none = written(tmp_path / "c.csv", "user,item", *(f"u{u},i{i}" for u in range(5) for i in range(5)))
    assert "time" in refused(towpath, tmp_path, none, "--split", "time")


def test_a_truncated_file(towpath, events: Path, tmp_path: Path) -> None:
    data = tmp_path / "a.csv.gz"
    data.write_bytes(gzip.compress(events.read_bytes())[:-2000])
    assert str(data) in refused(towpath, tmp_path, data)
    data.write_bytes(gzip.compress(events.read_bytes())[:50])
    assert refused(towpath, tmp_path, data).endswith("; copy or make it again.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_one_may_not_read(towpath, tmp_path: Path) -> None:
    data = written(tmp_path / "a.csv", "user,item", "a,x", "b,y")
    data.chmod(0)
    assert "should be readable but is not for you" in refused(towpath, tmp_path, data)


def test_a_line_that_does_not_parse_is_named(towpath, tmp_path: Path) -> None:
    data = written(
        tmp_path / "a.jsonl", '{"user": 1, "item": 2}', '{"user": 1, "item"', '{"user": 2, "item": 2}'
    )
    assert "line 2" in refused(towpath, tmp_path, data)


def test_a_duplicate_header(towpath, tmp_path: Path) -> None:
    data = written(tmp_path / "a.csv", "user,item,item", "a,x,1", "b,y,2")
    assert "item" in refused(towpath, tmp_path, data)


@pytest.mark.parametrize("rows", [["a,x", "a,y", "a,z"], ["a,x", "b,x", "c,x"]])
def test_one_user_or_one_item(rows: list[str], towpath, tmp_path: Path) -> None:
    assert "one" in refused(towpath, tmp_path, written(tmp_path / "a.csv", "user,item", *rows))


def test_missing_files_and_unknown_names(towpath, tmp_path: Path) -> None:
    assert "no-such.csv" in refused(towpath, tmp_path, tmp_path / "no-such.csv")
    assert "did you mean 'ml-1m'?" in refused(towpath, tmp_path, "ml-1n")
    assert f"data fetch ml-1m --data-dir {tmp_path}`" in refused(
        towpath, tmp_path, "ml-1m", "--data-dir", tmp_path
    )


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--model", "esae"], "did you mean 'ease'?"),
        (["--model", "pop"], "did you mean 'popularity'?"),
        (["--method", "plane"], "did you mean 'plain'?"),
        (["--set", "epcohs=3"], "did you mean 'epochs'?"),
        (["--set", "epochs=many"], "epochs cannot be 'many'"),
        (["--set", "epochs"], "--set takes KEY=VALUE"),
        (["--split", "tiem"], "did you mean 'time'?"),
        (["--repeats", "frist"], "did you mean 'first'?"),
        (["--filter", "kcore"], "did you mean 'k-core'?"),
        (["--modle", "mf"], "did you mean --model?"),
        (["--seed", "one"], "--seed"),
        (["--threads", "0"], "--threads"),
    ],
)
def test_unknown_names_and_values(options: list[str], part: str, towpath, events, tmp_path: Path) -> None:
    assert part in refused(towpath, tmp_path, events, *options)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["fti"], "Did you mean 'fit'?"),
        (["data", "lits"], "Did you mean 'list'?"),
        (["data"], "Missing command"),
        (["fit"], "Missing argument 'DATA'"),
        (["fit", "ml-1m"], "Missing option '--out'"),
        (["recommend", "nowhere"], "recommend takes one of --user U"),
        (["recommend", "nowhere", "--user", "1"], "no saved artifact at nowhere"),
        (["evaluate", "nowhere"], "no run at nowhere"),
        (["data", "fetch", "ml-1n", "--data-dir", "nowhere"], "did you mean 'ml-1m'?"),
        (["compare", "x", "--seeds", "few"], "--seeds takes"),
        (["compare", "x", "--models", "mf,,ease"], "--models takes"),
        (["compare", "x", "--models", "mf,esae"], "did you mean 'ease'?"),
        (["compare", "x", "--models", "mf,ease", "--set", "eese.ridge=1"], "did you mean 'ease'?"),
    ],
)
def test_wrong_usage(arguments: list[str], part: str, towpath) -> None:
    answer = towpath(*arguments)
    assert part in answer.sentence()
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("k", [0, -1, 81])
def test_lengths_that_cannot_be(k: int, towpath, finished: Path) -> None:
    assert "between 1 and the 80 items" in towpath("recommend", finished, "--user", "u1", "-k", k).sentence()
    assert "between 1 and the 80 items" in towpath("similar", finished, "--item", "i1", "-k", k).sentence()
    assert "between 1 and the 80 candidates" in towpath("evaluate", finished, "-k", k).sentence()


def test_unknown_protocol_part_and_item(towpath, finished: Path) -> None:
    assert "did you mean 'full'?" in towpath("evaluate", finished, "--protocol", "ful").sentence()
    assert "did you mean 'test'?" in towpath("evaluate", finished, "--on", "tset").sentence()
    assert "There is no item 'film' among the 80" in towpath("similar", finished, "--item", "film").sentence()


def test_a_damaged_artifact(towpath, finished: Path, tmp_path: Path) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    model = run / "artifact" / "model.safetensors"
    whole = model.read_bytes()
    model.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    for verb in (["recommend", run, "--user", "u1"], ["evaluate", run], ["similar", run, "--item", "i1"]):
        assert "model.safetensors does not match its checksum" in towpath(*verb).sentence()
    model.write_bytes(whole[:100])
    assert "does not match its checksum" in towpath("evaluate", run).sentence()
    history = run / "history.jsonl"
    history.write_text(history.read_text()[:-3])
    with pytest.raises(ArtifactError, match=r"history\.jsonl is not what checksums\.json lists"):
        _ = Run(run).history
    list_checksums(run)
    with pytest.raises(ArtifactError, match=r"history\.jsonl cannot be parsed"):
        _ = Run(run).history
    (run / "run.json").write_text('{"format": 7}')
    assert "run format 7, and this towpath reads format 2" in towpath("evaluate", run).sentence()
    (run / "run.json").write_text("{")
    assert "cannot be parsed" in towpath("evaluate", run).sentence()


def test_what_is_no_run_is_not_evaluated(towpath, finished: Path, events: Path) -> None:
    assert "saved model without the data" in towpath("evaluate", finished / "artifact").sentence()
    assert "is no run folder" in towpath("evaluate", events).sentence()


def test_a_model_larger_than_memory(towpath, events: Path, tmp_path: Path) -> None:
    huge = towpath("fit", events, "--set", f"embedding_dim={10**11}", "--out", tmp_path / "run")
    assert "not enough memory" in huge.sentence()


def script(*arguments: object) -> list[str]:
    code = "from towpath.cli import main; raise SystemExit(main())"
    return [sys.executable, "-c", code, *map(str, arguments)]


def test_a_bug_shows_its_traceback_and_asks_for_a_report(towpath, finished: Path, monkeypatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("towpath.serving.recommender.load", broken)
    answer = towpath("similar", finished, "--item", "i1")
    assert answer.code == 1
    assert "Traceback" in answer.err
    assert "ZeroDivisionError: oh" in answer.err
    assert "please report it" in answer.err.splitlines()[-1]


def test_ctrl_c_anywhere_is_one_sentence(towpath, finished: Path, monkeypatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("towpath.serving.recommender.load", interrupted)
    answer = towpath("similar", finished, "--item", "i1")
    assert (answer.code, answer.err) == (130, "towpath: Stopped.\n")


def test_ctrl_c_in_a_comparison_by_several_processes(events: Path) -> None:
    long = ["--seeds", "40", "--jobs", "2", "--set", "epochs=200", "--set", "patience=200"]
    process = subprocess.Popen(
        script("compare", events, *long), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    before = [process.stderr.readline() for _ in range(4)]  # what was guessed; then the processes are started
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everyone gets it
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, (before, err)
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "towpath: Stopped."


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    answer = subprocess.run(
        script("data", "list"), stdout=write, stderr=subprocess.PIPE, text=True, timeout=60
    )
    os.close(write)
    assert answer.returncode == 141
    assert answer.stderr == ""
