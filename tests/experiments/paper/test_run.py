"""Cells are made once, whoever asks, and a stopped or shared run comes to the same numbers."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tiny_paper
from tiny_paper import SMALL, TINY, asked
from towpath.errors import ConfigError, DataError, TrainingError
from towpath.experiments.paper import cells
from towpath.experiments.paper.benchmarks import BenchmarkLocation, open_benchmark
from towpath.experiments.paper.experiment import limited
from towpath.experiments.paper.locks import locked
from towpath.experiments.paper.record import read_record, runs_in
from towpath.experiments.paper.run import Plan, fit_all, plan

TESTS = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the tiny experiment registered; forgotten afterwards."""
    with tiny_paper.registered(tmp_path) as registered:
        yield registered


def states(made: Plan) -> list[str]:
    heard: list[str] = []
    fit_all(made.jobs_wanted, 1, lambda status: heard.append(status.state))
    return heard


def test_cells_are_made_once_and_shared_between_experiments(folder: Path) -> None:
    made = plan(TINY, asked(folder))
    assert len(made.jobs_wanted) == 2 * (1 + 2 + 2)  # popularity knows no seed
    assert states(made) == ["made"] * 10
    assert states(plan(TINY, asked(folder))) == ["found"] * 10
    # Another experiment with the same column under another name finds it; one more seed is all that is made.
    other = replace(TINY, methods={"plain": TINY.methods["MCF"]}, benchmarks=("tiny",))
    assert sorted(states(plan(other, asked(folder, seeds=(0, 1, 2))))) == ["found", "found", "made"]
    assert not list(folder.rglob("*.partial"))
    assert not list(folder.rglob("*.lock")) or all(p.parent.name == "worlds" for p in folder.rglob("*.lock"))


def test_whatever_a_number_depends_on_makes_another_cell(folder: Path) -> None:
    one = {job.path for job in plan(TINY, asked(folder)).jobs_wanted}
    other_code = plan(TINY, replace(asked(folder), code="another")).jobs_wanted
    other_settings = plan(TINY, asked(folder, settings={"epochs": 2})).jobs_wanted
    other_k = plan(replace(TINY, k=5), asked(folder)).jobs_wanted
    for jobs_wanted in (other_code, other_k):
        assert not one & {job.path for job in jobs_wanted}
    assert {p.column for p in other_settings if p.path in one} == {"Pop"}  # nothing to train in it


def test_a_fit_that_breaks_down_is_kept_as_such(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise TrainingError("w collapsed in epoch 1.")

    monkeypatch.setattr(cells, "fit", broken)
    small = limited(TINY, ["tiny"], ["MCF"])
    made = plan(small, asked(folder))
    assert states(made) == ["failed", "failed"]
    monkeypatch.undo()
    assert states(made) == ["failed", "failed"]  # the same code and seed would break down again
    record = made.record
    (found,) = (record.found(benchmark, folder / "out" / "cells") for benchmark in record.benchmarks)
    assert found.failures["MCF", 0] == "w collapsed in epoch 1."
    assert found.columns == []


def test_a_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    held = (
        "import sys, time\nfrom pathlib import Path\nfrom towpath.experiments.paper.locks import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    path = tmp_path / "one.lock"
    with subprocess.Popen(
        [sys.executable, "-c", held, str(path)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with locked(path, wait=False) as mine:
            assert not mine
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    with locked(path, wait=False) as mine:
        assert mine


def test_two_processes_share_the_work_and_find_the_same(folder: Path) -> None:
    script = (
        "import json, sys\nfrom pathlib import Path\nimport torch\nimport tiny_paper\n"
        "from towpath.experiments.paper.run import fit_all, plan\n"
        "torch.set_num_threads(1)\nfolder = Path(sys.argv[1])\ntiny_paper.register(folder)\n"
        "made = plan(tiny_paper.SMALL, tiny_paper.asked(folder))\nheard = []\n"
        "fit_all(made.jobs_wanted, 1, lambda status: heard.append(status.state))\nprint(json.dumps(heard))\n"
    )
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    status = [json.loads(process.communicate(timeout=120)[0]) for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert all(len(heard) == 5 for heard in status)
    assert sum(heard.count("made") for heard in status) == 5  # nothing twice
    assert states(plan(SMALL, asked(folder))) == ["found"] * 5


def test_a_record_is_read_as_it_was_written(folder: Path) -> None:
    made = plan(TINY, asked(folder, command="towpath paper run tiny"))
    at = made.keep(folder / "out")
    assert read_record(at) == made.record
    assert runs_in(folder / "out") == [at]
    assert made.record.benchmarks[0].best is None
    best = made.record.benchmarks[1].best
    assert best is not None
    assert 0 < best < 10


def test_what_is_not_there_is_one_sentence(folder: Path) -> None:
    with pytest.raises(DataError, match="leave GoodReads out with --data"):
        open_benchmark(BenchmarkLocation("goodreads", folder, folder))
    with pytest.raises(ConfigError, match="did you mean 'MCF'"):
        limited(TINY, [], ["MFC"])
    with pytest.raises(ConfigError, match="no data set of this experiment 'tyny'"):
        limited(TINY, ["tyny"], [])
    with pytest.raises(ConfigError, match="--tuned takes a folder"):
        plan(TINY, asked(folder, tuned=folder / "nowhere"))


def search(folder: Path, fingerprint: str, settings: dict[str, object]) -> None:
    """What towpath tune leaves behind for mf by transport."""
    folder.mkdir(parents=True)
    about = {"format": 1, "fingerprint": fingerprint, "model": "mf", "method": "transport"}
    (folder / "tune.json").write_text(json.dumps(about))
    (folder / "best.json").write_text(json.dumps(about | {"settings": settings}))


def test_tuned_settings_go_to_the_game_they_were_searched_for(folder: Path) -> None:
    here = open_benchmark(BenchmarkLocation("tiny", None, folder)).split.fingerprint
    search(folder / "tuned" / "one", here, {"penalty": 3.0, "reweight": "all", "epochs": 50})
    search(folder / "tuned" / "two", here, {"penalty": 9.0, "players": "models", "reweight": "all"})
    search(folder / "tuned" / "three", "other data", {"penalty": 7.0, "reweight": "all"})
    search(folder / "tuned" / "tiny-simulation" / "dt", "other data", {"penalty": 5.0, "reweight": "all"})
    made = plan(TINY, asked(folder, tuned=folder / "tuned"))
    settings = {benchmark: mine["DT-MCF"]["settings"] for benchmark, mine in made.record.settings.items()}
    assert (settings["tiny"]["penalty"], settings["tiny-simulation"]["penalty"]) == (3.0, 5.0)
    assert settings["tiny"]["epochs"] == 3  # what the experiment sets itself stays
    assert made.record.origins == {
        "tiny": {"DT-MCF": "tuned on this split"},
        "tiny-simulation": {"DT-MCF": "tuned on another split"},
    }
