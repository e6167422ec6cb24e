"""Callbacks per epoch, and MLflow: the calls that are made, and the real thing where it is installed."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

import towpath
from small import small_split
from towpath.errors import ConfigError
from towpath.tracking import MlflowLogger

SPLIT = small_split()
FAST = {"epochs": 3, "patience": 3, "embedding_dim": 4, "batch_size": 64}


class FakeMlflow(ModuleType):
    """Remembers what was called."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.calls: list[tuple] = []

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *given, **named: self.calls.append((name, *given, named))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeMlflow:
    module = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return module


def test_every_epoch_is_told() -> None:
    rows: list[dict] = []
    done = towpath.fit(SPLIT, "mf", on_epoch=rows.append, **FAST)
    assert rows == list(done.history)
    assert [row["epoch"] for row in rows] == [1, 2, 3]


def test_the_calls(fake: FakeMlflow, tmp_path: Path) -> None:
    with MlflowLogger(experiment="shop", run_name="one", uri="sqlite:///x.db") as logger:
        done = towpath.fit(SPLIT, "mf", on_epoch=logger, **FAST)
        logger.log_fit(done)
        logger.log_folder(tmp_path)
    names = [call[0] for call in fake.calls]
    assert names == [
        "set_tracking_uri", "set_experiment", "start_run", "log_metrics", "log_metrics", "log_metrics",
        "log_params", "log_metrics", "set_tag", "log_artifacts", "end_run",
    ]  # fmt: skip
    assert fake.calls[0] == ("set_tracking_uri", "sqlite:///x.db", {})
    assert fake.calls[2] == ("start_run", {"run_name": "one"})
    second = {name: value for name, value in done.history[1].items() if name != "epoch"}
    assert fake.calls[4] == ("log_metrics", second, {"step": 2})
    assert fake.calls[6][1]["settings.embedding_dim"] == 4
    assert fake.calls[6][1]["model"] == "mf"
    assert fake.calls[-1] == ("end_run", {"status": "FINISHED"})


def test_a_fit_that_breaks_is_marked(fake: FakeMlflow) -> None:
    with pytest.raises(ZeroDivisionError), MlflowLogger():
        raise ZeroDivisionError
    assert fake.calls[-1] == ("end_run", {"status": "FAILED"})


def test_without_mlflow_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match=r"pip install 'towpath\[tracking\]'"):
        MlflowLogger()


@pytest.mark.filterwarnings("default")  # those of other people's code
def test_the_real_thing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a.txt").write_text("a")
    with MlflowLogger(experiment="shop", uri=f"sqlite:///{tmp_path}/m.db") as logger:
        done = towpath.fit(SPLIT, "mf", on_epoch=logger, **FAST)
        logger.log_fit(done)
        logger.log_folder(tmp_path / "model")
    [run] = mlflow.search_runs(experiment_names=["shop"], output_format="list")
    assert run.data.params["settings.epochs"] == "3"
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
    assert [m.value for m in history] == pytest.approx([row["loss"] for row in done.history])
    assert [f.path for f in mlflow.MlflowClient().list_artifacts(run.info.run_id, "model")] == ["model/a.txt"]
