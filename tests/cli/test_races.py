"""Two writers to one --out, SIGTERM and divergence: nothing is destroyed, nothing half-made is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from towpath.files import scratch_folder
from towpath.locks import only_writer

SCRIPT = "from towpath.cli import main; raise SystemExit(main())"
LONG = ["--set", "epochs=400", "--set", "patience=400", "--set", "embedding_dim=4"]


def started(*arguments: object, scratch: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"TMPDIR": str(scratch), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", SCRIPT, *map(str, arguments)]
    return subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".*"))


WRITERS = [
    "fit",
    "tune",
    "compare --models=mf,ease",
    "data prepare",
    "simulate create",
    "log export",
    "export",
]


@pytest.mark.parametrize("verb", WRITERS)
def test_a_second_writer_says_so_and_touches_nothing(
    verb: str, towpath, events: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    given = [] if verb == "simulate create" else [events]
    with only_writer(out):
        before = sorted(tmp_path.rglob("*"))
        sentence = towpath(*verb.split(), *given, "--out", out).sentence()
        assert sorted(tmp_path.rglob("*")) == before
    assert sentence.startswith(f"Another towpath is writing to {out} now; ")
    assert hidden(tmp_path) == []


def test_the_lock_makes_no_folders_that_stay(towpath, events: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "er" / "run"
    assert "did you mean" in towpath("fit", events, "--model", "mff", "--out", out).sentence()
    assert list(tmp_path.iterdir()) == []


def test_sigterm_leaves_a_run_to_resume_and_no_temporary_files(events: Path, tmp_path: Path, towpath) -> None:
    out, scratch = tmp_path / "run", tmp_path / "scratch"
    scratch.mkdir()
    process = started("fit", events, *LONG, "--out", out, scratch=scratch)
    deadline = time.monotonic() + 120
    while not (out / "history.jsonl").exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert (
        "Another towpath is writing to" in towpath("fit", events, *LONG, "--out", out, "--resume").sentence()
    )
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert err.splitlines()[-1].startswith("towpath: Stopped; to resume after the last complete epoch")
    assert list(scratch.iterdir()) == []
    assert hidden(tmp_path) == []
    assert (out / "checkpoint.safetensors").is_file()


@pytest.mark.parametrize("out", ["", "/", ".."])
def test_an_out_without_a_name_is_refused(out: str, towpath, events: Path) -> None:
    for verb in (["fit", events], ["simulate", "create"], ["data", "prepare", events], ["tune", events]):
        assert "--out should name a file or folder" in towpath(*verb, "--out", out).sentence()


def test_a_world_does_not_replace_what_is_no_world(towpath, finished: Path, tmp_path: Path) -> None:
    small = ["--set", "users=20", "--set", "items=20", "--set", "shown_per_user=5"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    for place in (tmp_path / "mine", finished, finished / "artifact"):
        before = sorted(place.rglob("*"))
        sentence = towpath("simulate", "create", *small, "--out", place).sentence()
        assert "already exists and is no world" in sentence
        assert sorted(place.rglob("*")) == before


def test_a_world_too_small_to_be_described_is_not_written(towpath, tmp_path: Path) -> None:
    tiny = ["--set", "users=20", "--set", "items=15", "--set", "shown_per_user=4"]
    towpath("simulate", "create", *tiny, "--out", tmp_path / "world").sentence()
    assert list(tmp_path.iterdir()) == []


def test_more_threads_than_a_machine_can_have_are_refused(towpath, events: Path, tmp_path: Path) -> None:
    assert "--threads" in towpath("fit", events, "--threads", 2**63 - 1, "--out", tmp_path / "run").sentence()


@pytest.mark.parametrize(
    "settings",
    [["learning_rate=1e30"], ["learning_rate=1e308", "loss=softmax"], ["embedding_dim=1000000000000000000"]],
)
def test_a_run_that_cannot_be_trained_is_not_left(
    settings: list[str], towpath, events: Path, tmp_path: Path
) -> None:
    more = [word for setting in settings for word in ("--set", setting)]
    towpath("fit", events, "--set", "epochs=3", *more, "--out", tmp_path / "run").sentence()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "setting",
    ["learning_rate=1e999", "l2=-Infinity", "learning_rate=NaN", "epochs=" + "9" * 400, "l2=" + "[" * 50_000],
)
def test_settings_that_are_no_number_are_refused(setting: str, towpath, events: Path, tmp_path: Path) -> None:
    sentence = towpath("fit", events, "--set", setting, "--out", tmp_path / "run").sentence()
    assert len(sentence) < 500
    assert list(tmp_path.iterdir()) == []


def test_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "towpath-999999999-x").mkdir()
    (tmp_path / "towpath-notes-x").mkdir()
    (tmp_path / f"towpath-{os.getppid()}-x").mkdir()
    with scratch_folder() as mine:
        assert mine.is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {"towpath-notes-x", f"towpath-{os.getppid()}-x"}
