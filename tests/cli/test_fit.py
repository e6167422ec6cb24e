"""towpath fit: the run folder, refusing, resuming, and surviving kill -9."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from towpath.cli import main

QUICK = ["--model", "mf", "--set", "epochs=2", "--set", "embedding_dim=4", "--set", "batch_size=512"]
# Small batches make epochs slow enough to be killed in between.
SLOW = ["--set", "epochs=20", "--set", "patience=20", "--set", "batch_size=128", "--set", "embedding_dim=8"]


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_a_run_folder_holds_everything(towpath, events: Path, tmp_path: Path) -> None:
    told = towpath("fit", events, *QUICK, "--seed", 3, "--out", tmp_path / "run", "--json").json
    assert told["run"] == str(tmp_path / "run")
    assert (told["model"], told["method"], told["seed"]) == ("mf", "plain", 3)
    assert told["settings"]["epochs"] == 2
    assert (told["users"], told["items"], told["epochs"]) == (300, 80, 2)
    assert 0 <= told["metrics"]["validation_hit"] <= 1
    top = {p.name for p in (tmp_path / "run").iterdir()}
    assert top == {
        "run.json",
        "split",
        "history.jsonl",
        "checkpoint.safetensors",
        "artifact",
        "checksums.json",
    }
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["recipe"]["settings"]["learning_rate"] == told["settings"]["learning_rate"]
    assert record["data"]["fingerprint"] == told["fingerprint"]
    rows = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [1, 2]


def test_people_see_notes_progress_and_a_table(towpath, events: Path, tmp_path: Path) -> None:
    answer = towpath("fit", events, *QUICK, "--out", tmp_path / "run")
    assert answer.code == 0
    assert "guessed" in answer.err
    assert "epoch   2  loss" in answer.err
    assert "epoch" not in answer.out.split("best_epoch")[0].replace("epochs", "")
    assert "validation_hit" in answer.out
    assert towpath("fit", events, *QUICK, "--out", tmp_path / "quiet", "--quiet").err == ""


@pytest.mark.parametrize("model", ["popularity", "ease", "mf"])
def test_same_seed_same_bytes(model: str, towpath, events: Path, tmp_path: Path) -> None:
    quick = QUICK[2:] if model == "mf" else []
    for name in ("one", "two"):
        assert towpath("fit", events, "--model", model, *quick, "--out", tmp_path / name, "--json").code == 0
    for file in files_in(tmp_path / "one" / "artifact"):
        one, two = ((tmp_path / name / "artifact" / file).read_bytes() for name in ("one", "two"))
        assert one == two, file


def test_an_existing_run_is_refused_before_anything_is_read(towpath, finished: Path) -> None:
    before = {p: (finished / p).stat().st_mtime_ns for p in files_in(finished)}
    sentence = towpath("fit", "no-such-file.csv", *QUICK, "--out", finished).sentence()
    assert f"{finished} already exists; choose another --out, or continue it with --resume." in sentence
    assert {p: (finished / p).stat().st_mtime_ns for p in files_in(finished)} == before


def test_resuming_a_finished_run_says_so(towpath, events: Path, finished: Path) -> None:
    answer = towpath("fit", events, *QUICK, "--out", finished, "--resume")
    assert answer.code == 0
    assert "is finished already" in answer.err


def test_resuming_what_is_not_there_starts_it(towpath, events: Path, tmp_path: Path) -> None:
    assert towpath("fit", events, *QUICK, "--out", tmp_path / "new", "--resume").code == 0
    assert (tmp_path / "new" / "artifact").is_dir()


def test_resuming_with_another_setting_or_seed_or_data_names_it(
    towpath, events: Path, finished: Path, tmp_path: Path
) -> None:
    run = ["--out", finished, "--resume"]
    sentence = towpath("fit", events, *QUICK, "--set", "learning_rate=0.5", *run).sentence()
    assert "was started with recipe.settings.learning_rate = 0.0" in sentence
    assert "and now it is 0.5" in sentence
    assert "recipe.seed = 0, and now it is 1" in towpath("fit", events, *QUICK, "--seed", 1, *run).sentence()
    shorter = tmp_path / "shorter.csv"
    shorter.write_text("\n".join(events.read_text().splitlines()[:-1]) + "\n")
    assert "was started with data." in towpath("fit", shorter, *QUICK, *run).sentence()
    # The same data under another name are the same data.
    copy = tmp_path / "copy.csv"
    copy.write_bytes(events.read_bytes())
    assert towpath("fit", copy, *QUICK, *run).code == 0


def test_a_folder_that_is_no_run_is_not_resumed(towpath, events: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    sentence = towpath("fit", events, *QUICK, "--out", tmp_path / "mine", "--resume").sentence()
    assert "is not a run to resume: it has no run.json" in sentence
    assert files_in(tmp_path / "mine") == ["thesis.txt"]


def test_an_empty_folder_may_become_a_run(towpath, events: Path, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    assert towpath("fit", events, *QUICK, "--out", tmp_path / "made").code == 0


def command(*arguments: object) -> list[str]:
    return [
        sys.executable,
        "-c",
        "from towpath.cli import main; raise SystemExit(main())",
        *map(str, arguments),
    ]


def wait_for_rows(run: Path, rows: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 180  # torch takes long to load on a slow or busy machine
    while time.monotonic() < deadline and process.poll() is None:
        history = run / "history.jsonl"
        if history.exists() and len(history.read_text().splitlines()) >= rows:
            return
        time.sleep(0.005)
    raise AssertionError(f"no {rows} rows were written; exit code {process.poll()}")


GAME = ["--method", "transport", "--set", "hard_negatives=1", "--set", "hard_negative_depth=20"]
KILLED = {
    "plain": [],
    "margin players": GAME,
    "model players": [*GAME, "--w", "mf", "--g", "mf", "--set", "target_distance=0.1"],
}


@pytest.mark.parametrize("method", KILLED.values(), ids=KILLED)
def test_killed_twice_and_resumed_gives_the_same_bytes(
    method: list[str], towpath, events: Path, tmp_path: Path
) -> None:
    asked = ["fit", events, *SLOW, *method, "--out"]
    assert towpath(*asked, tmp_path / "whole").code == 0
    run = tmp_path / "killed"
    for rows in (2, 5):
        process = subprocess.Popen(command(*asked, run, "--resume"), stderr=subprocess.DEVNULL)
        wait_for_rows(run, rows, process)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (run / "artifact").exists()
    answer = towpath(*asked, run, "--resume")
    assert answer.code == 0
    assert "Resuming after epoch" in answer.err
    files = files_in(tmp_path / "whole" / "artifact")
    assert files == files_in(run / "artifact")
    assert ("players.safetensors" in files) is bool(method)
    for file in files:
        assert (run / "artifact" / file).read_bytes() == (tmp_path / "whole" / "artifact" / file).read_bytes()
    assert without_clocks(run) == without_clocks(tmp_path / "whole")


def without_clocks(run: Path) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in rows]


def test_killed_between_training_and_artifact(towpath, events: Path, tmp_path: Path, monkeypatch) -> None:
    assert towpath("fit", events, *QUICK, "--out", tmp_path / "whole").code == 0

    def killed(*_: object) -> None:
        raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr("towpath.serving.run.save_artifact", killed)
        with pytest.raises(SystemExit):
            towpath("fit", events, *QUICK, "--out", tmp_path / "run")
    assert towpath("recommend", tmp_path / "run", "--user", "u1").sentence().endswith("and --resume.")
    assert towpath("fit", events, *QUICK, "--out", tmp_path / "run", "--resume").code == 0
    one, two = (load_file(tmp_path / n / "artifact" / "model.safetensors") for n in ("run", "whole"))
    assert all((one[name] == two[name]).all() for name in two)


def test_ctrl_c_keeps_the_run_and_says_how_to_go_on(events: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = subprocess.Popen(
        command("fit", events, *SLOW, "--out", run, "--quiet"), stderr=subprocess.PIPE, text=True
    )
    wait_for_rows(run, 1, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == (
        "towpath: Stopped; to resume after the last complete epoch, run the same command with --resume "
        f"({run} is kept).\n"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert not [name for name in files_in(run) if "part" in name]


def test_ctrl_c_before_the_set_up_leaves_nothing(towpath, events: Path, tmp_path: Path, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("towpath.serving.run.save_split", interrupted)
    answer = towpath("fit", events, *QUICK, "--out", tmp_path / "run", "--quiet")
    assert (answer.code, answer.err) == (
        130,
        "towpath: Stopped before the run was set up; nothing was written.\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to(towpath, events: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sentence = towpath("fit", events, *QUICK, "--out", tmp_path / "file" / "run").sentence()
    assert "not a directory" in sentence
    assert files_in(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_one_may_not_write_to(towpath, events: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert "you may not write to" in towpath("fit", events, *QUICK, "--out", tmp_path / "run").sentence()
        assert files_in(tmp_path) == []
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("error", ["No space left on device", "Permission denied", "Read-only file system"])
def test_no_space_in_the_set_up_leaves_nothing(error: str, towpath, events, tmp_path, monkeypatch) -> None:
    number = {"No space left on device": 28, "Permission denied": 13, "Read-only file system": 30}[error]

    def full(split: object, folder: Path) -> None:
        folder.mkdir()
        (folder / "half").write_text("half")
        raise OSError(number, error, str(folder))

    monkeypatch.setattr("towpath.serving.run.save_split", full)
    sentence = towpath("fit", events, *QUICK, "--out", tmp_path / "run", "--quiet").sentence()
    assert error.lower() in sentence
    assert files_in(tmp_path) == []


def limited(*arguments: object, size: int) -> subprocess.CompletedProcess[str]:
    """The command in a process whose files may not grow beyond `size` bytes: a real failure to write."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )


def test_a_checkpoint_that_does_not_fit_on_the_disk(towpath, events: Path, tmp_path: Path) -> None:
    wide = ["--set", "embedding_dim=256", "--set", "epochs=1"]  # 400 kB of parameters
    answer = limited("fit", events, *wide, "--out", tmp_path / "run", size=200_000)
    assert answer.returncode == 2, answer.stderr
    assert "Traceback" not in answer.stderr
    assert not [name for name in files_in(tmp_path) if "part" in name]
    # With room again the run goes on.
    assert towpath("fit", events, *wide, "--out", tmp_path / "run", "--resume").code == 0


def test_main_is_what_the_script_calls(events: Path, tmp_path: Path) -> None:
    assert main(["fit", str(events), *QUICK, "--out", str(tmp_path / "run"), "--json"]) == 0
