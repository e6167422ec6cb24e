"""What tests of several folders share: an event file and a package, made on the spot."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from event_files import write_events
from tiny_package import install


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 users with 12 events each on 80 items."""
    return write_events(tmp_path_factory.mktemp("events") / "events.csv")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages on the path, with one that registers models and a method."""
    folder = tmp_path / "site-packages"
    install(folder)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("oddments", None)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """A function from a name to that script of the documentation; forgotten afterwards."""
    docs = Path(__file__).parents[1] / "docs"
    monkeypatch.syspath_prepend(str(docs))
    before = set(sys.modules)
    yield importlib.import_module
    for name in {path.stem for path in docs.glob("*.py")} & (set(sys.modules) - before):
        sys.modules.pop(name)
