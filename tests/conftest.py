"""What tests of several folders share: an event file made on the spot."""

from pathlib import Path

import pytest

from event_files import write_events


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 users with 12 events each on 80 items."""
    return write_events(tmp_path_factory.mktemp("events") / "events.csv")
