"""What tests of several folders share: an event file and a package, made on the spot."""

import sys
from collections.abc import Iterator
from pathlib import Path

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
