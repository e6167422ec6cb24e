from pathlib import Path

import numpy as np
import pytest

from towpath.data.engine import engine, quote_literal
from towpath.data.sources import read
from towpath.errors import DataError


def test_text_survives_quoting() -> None:
    with engine() as connection:
        for value in ("it's", "", "a''b", "\\", "naïve"):
            assert connection.execute(f"SELECT {quote_literal(value)}").fetchall() == [(value,)]


def test_too_little_room_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towpath.data.engine.LEAST_MEGABYTES", 1)
    monkeypatch.setattr("towpath.data.engine.MEGABYTES_PER_THREAD", 1)
    rows = np.random.default_rng(0).integers(0, 10**6, size=(50_000, 2))
    (tmp_path / "e.csv").write_text("user,item\n" + "".join(f"{u},{i}\n" for u, i in rows.tolist()))
    with pytest.raises(DataError, match="needs more room") as caught:
        read(tmp_path / "e.csv")
    assert "\n" not in str(caught.value)
