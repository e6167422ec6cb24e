"""Running verbs in this process."""

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from towpath.cli import main

QUICK = ["--model", "mf", "--set", "epochs=2", "--set", "embedding_dim=4", "--set", "batch_size=512"]


@dataclass(frozen=True)
class Answer:
    """What one command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    def sentence(self) -> str:
        """The one sentence of a command that could not be done; everything else about it is checked."""
        assert self.code == 2, self.err
        assert self.out == ""
        assert "Traceback" not in self.err
        line = self.err.strip().splitlines()[-1]
        assert line.startswith("towpath: ")
        return line.removeprefix("towpath: ")


Towpath = Callable[..., Answer]


@pytest.fixture
def towpath(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Towpath:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")  # and put back afterwards, since verbs set them
    monkeypatch.delenv("TOWPATH_DATA", raising=False)

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def finished(events: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of mf."""
    folder = tmp_path_factory.mktemp("runs") / "mf"
    assert main(["fit", str(events), *QUICK, "--out", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="session")
def finished_ease(events: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of ease."""
    folder = tmp_path_factory.mktemp("runs") / "ease"
    assert main(["fit", str(events), "--model", "ease", "--out", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard() -> None:
    """A shell lets its background jobs ignore Ctrl-C, and so would every process that a test starts."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
