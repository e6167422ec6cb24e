"""towpath fit --track."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

QUICK = ["--set", "epochs=2", "--set", "embedding_dim=4", "--set", "batch_size=512"]


def test_fit_logs_to_mlflow(towpath, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple] = []
    names = ("set_tracking_uri", "set_experiment", "start_run", "end_run", "log_metrics", "log_params")
    fake = {
        name: (lambda *given, _name=name, **named: calls.append((_name, *given, named)))
        for name in (*names, "set_tag", "log_artifacts")
    }
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(**fake))
    out = tmp_path / "run"
    assert towpath("fit", events, *QUICK, "--out", out, "--track", "mlflow", "--quiet").code == 0
    assert calls[0] == ("set_tracking_uri", "sqlite:///mlflow.db", {})
    assert [call[2]["step"] for call in calls if call[0] == "log_metrics" and call[2]] == [1, 2]
    assert ("log_artifacts", str(out / "artifact"), {"artifact_path": "model"}) in calls
    assert calls[-1] == ("end_run", {"status": "FINISHED"})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--track", "mlflo"], "There is no tracker 'mlflo'; did you mean 'mlflow'?"),
        (["--track-uri", "sqlite:///x.db"], "--track-uri says where a tracker keeps its runs"),
        (["--track", "mlflow"], "Tracking needs the library mlflow, which is not installed"),
    ],
)
def test_sentences(
    options: list[str], sentence: str, towpath, events: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    answer = towpath("fit", events, *QUICK, "--out", tmp_path / "run", *options)
    assert answer.sentence().startswith(sentence)
    assert not (tmp_path / "run").exists()
