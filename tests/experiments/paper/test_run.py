"""Results are computed once, and a stopped or shared run comes to the same numbers."""

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
from tiny_paper import SMALL, TINY, config
from towpath.errors import ConfigError, DataError, TrainingError
from towpath.experiments.paper import jobs
from towpath.experiments.paper.benchmarks import BenchmarkLocation, open_benchmark
from towpath.experiments.paper.columns import ALIKE
from towpath.experiments.paper.experiment import on_any_of, restrict, select_columns
from towpath.experiments.paper.record import read_record, runs_in
from towpath.experiments.paper.run import Plan, fit_all, plan
from towpath.experiments.result_store import open_store
from towpath.locks import locked
from towpath.methods.recipe import Recipe

TESTS = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the tiny experiment registered; forgotten afterwards."""
    with tiny_paper.registered(tmp_path) as registered:
        yield registered


def states(made: Plan) -> list[str]:
    heard: list[str] = []
    fit_all(made.jobs, 1, lambda status: heard.append(status.state))
    return heard


def test_results_are_computed_once_and_shared_between_experiments(folder: Path) -> None:
    made = plan(TINY, config(folder))
    assert len(made.jobs) == 2 * (1 + 2 + 2)  # popularity knows no seed
    assert states(made) == ["fitted"] * 10
    assert states(plan(TINY, config(folder))) == ["stored"] * 10
    # Another experiment with the same column under another name finds it; one more seed is all that is made.
    other = replace(TINY, methods={"plain": TINY.methods["MCF"]}, benchmarks=("tiny",))
    assert sorted(states(plan(other, config(folder, seeds=(0, 1, 2))))) == ["fitted", "stored", "stored"]
    assert not list(folder.rglob("*.partial"))
    assert not list(folder.rglob("*.lock")) or all(p.parent.name == "worlds" for p in folder.rglob("*.lock"))


def test_whatever_a_number_depends_on_makes_another_result(folder: Path) -> None:
    one = {job.name for job in plan(TINY, config(folder)).jobs}
    other_code = plan(TINY, replace(config(folder), code="another")).jobs
    other_settings = plan(TINY, config(folder, settings={"epochs": 2})).jobs
    other_k = plan(replace(TINY, k=5), config(folder)).jobs
    for others in (other_code, other_k):
        assert not one & {job.name for job in others}
    assert {job.spec.label for job in other_settings if job.name in one} == {"Pop"}  # nothing to train in it


def test_a_fit_that_breaks_down_is_kept_as_such(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise TrainingError("w collapsed in epoch 1.")

    monkeypatch.setattr(jobs, "fit", broken)
    small = select_columns(restrict(TINY, ["tiny"]), ["MCF"])
    made = plan(small, config(folder))
    assert states(made) == ["failed", "failed"]
    monkeypatch.undo()
    assert states(made) == ["failed", "failed"]  # the same code and seed would break down again
    record = made.record
    store = open_store(folder / "out", record.code)
    (results,) = (record.results_on(benchmark, store) for benchmark in record.benchmarks)
    assert results.failures["MCF", 0] == "w collapsed in epoch 1."
    assert results.columns == []


def test_a_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    held = (
        "import sys, time\nfrom pathlib import Path\nfrom towpath.locks import locked\n"
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
        "made = plan(tiny_paper.SMALL, tiny_paper.config(folder))\nheard = []\n"
        "fit_all(made.jobs, 1, lambda status: heard.append(status.state))\nprint(json.dumps(heard))\n"
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
    assert sum(heard.count("fitted") for heard in status) == 5  # nothing twice
    assert states(plan(SMALL, config(folder))) == ["stored"] * 5


def test_a_record_is_read_as_it_was_written(folder: Path) -> None:
    made = plan(TINY, config(folder, command="towpath paper run tiny"))
    at = made.write(folder / "out")
    assert read_record(at) == made.record
    assert runs_in(folder / "out") == [at]
    assert made.record.benchmarks[0].best is None
    best = made.record.benchmarks[1].best
    assert best is not None
    assert 0 < best < 10


def test_of_all_experiments_those_are_run_that_have_the_data() -> None:
    other = replace(TINY, name="other", benchmarks=("tiny-simulation",))
    found = on_any_of(["tiny"], [TINY, other])
    assert [(one.name, one.benchmarks) for one in found] == [(TINY.name, ("tiny",))]
    with pytest.raises(ConfigError, match="no data set of these experiments 'tyny'"):
        on_any_of(["tiny", "tyny"], [TINY, other])


def test_what_is_not_there_is_one_sentence(folder: Path) -> None:
    with pytest.raises(DataError, match="leave GoodReads out with --data"):
        open_benchmark(BenchmarkLocation("goodreads", folder, folder))
    with pytest.raises(ConfigError, match="did you mean 'MCF'"):
        select_columns(TINY, ["MFC"])
    with pytest.raises(ConfigError, match="no data set of this experiment 'tyny'"):
        restrict(TINY, ["tyny"])
    with pytest.raises(ConfigError, match="--tuned takes a folder"):
        plan(TINY, config(folder, tuned=folder / "nowhere"))


def search(folder: Path, fingerprint: str, settings: dict[str, object]) -> None:
    """What towpath tune leaves behind for mf by transport."""
    folder.mkdir(parents=True)
    about = {"format": 1, "fingerprint": fingerprint, "model": "mf", "method": "transport"}
    (folder / "tune.json").write_text(json.dumps(about))
    (folder / "best.json").write_text(json.dumps(about | {"settings": settings}))


def test_a_search_decides_what_all_columns_start_from_alike(folder: Path) -> None:
    here = open_benchmark(BenchmarkLocation("tiny", None, folder)).split.fingerprint
    search(folder / "tuned" / "dt", here, {"l2": 0.5, "negatives": 5, "reweight": "all"})
    methods = {"DT-MCF": Recipe("mf", "transport", {"reweight": "all", "negatives": 4} | {"l2": ALIKE["l2"]})}
    made = plan(replace(SMALL, methods=methods, claims=()), config(folder, tuned=folder / "tuned"))
    settings = made.record.settings["tiny"]["DT-MCF"]["settings"]
    assert (settings["l2"], settings["negatives"]) == (0.5, 4)  # a choice of the experiment's own stays


def test_tuned_settings_go_to_the_game_they_were_searched_for(folder: Path) -> None:
    here = open_benchmark(BenchmarkLocation("tiny", None, folder)).split.fingerprint
    search(folder / "tuned" / "one", here, {"penalty": 3.0, "reweight": "all", "epochs": 50})
    search(folder / "tuned" / "two", here, {"penalty": 9.0, "players": "models", "reweight": "all"})
    search(folder / "tuned" / "three", "other data", {"penalty": 7.0, "reweight": "all"})
    search(folder / "tuned" / "tiny-simulation" / "dt", "other data", {"penalty": 5.0, "reweight": "all"})
    made = plan(TINY, config(folder, tuned=folder / "tuned"))
    settings = {benchmark: mine["DT-MCF"]["settings"] for benchmark, mine in made.record.settings.items()}
    assert (settings["tiny"]["penalty"], settings["tiny-simulation"]["penalty"]) == (3.0, 5.0)
    assert settings["tiny"]["epochs"] == 3  # what the experiment sets itself stays
    assert made.record.origins == {
        "tiny": {"DT-MCF": "tuned on this split"},
        "tiny-simulation": {"DT-MCF": "tuned on another split"},
    }
