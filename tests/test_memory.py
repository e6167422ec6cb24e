"""A limit of memory is kept to, or refused in one sentence."""

from pathlib import Path

import numpy as np
import pytest

import towpath
from small import small_split
from towpath import memory
from towpath.cli import main
from towpath.errors import ConfigError
from towpath.memory import current_limit, limit_memory, memory_limit, parse_size, resident
from towpath.models.pair_tables import table_of
from towpath.ranking.blocks import rows_per_block


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("1.5 gib", 1_610_612_736), ("800m", 8 * 10**8), ("12", 12)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1GB", "0", "2TB", "1e9", "GB", "nan"])
def test_what_is_no_size_is_said(text: str) -> None:
    with pytest.raises(ConfigError, match="a number with a unit, such as 2GB"):
        parse_size(text)


def test_a_limit_ends_with_its_block_or_command(capsys: pytest.CaptureFixture[str]) -> None:
    with memory_limit("2GB"):
        assert current_limit() == 2 * 10**9
        with memory_limit(None):
            assert current_limit() is None
    assert current_limit() is None
    assert main(["data", "inspect", "nowhere.csv", "--memory", "1GB"]) == 2
    assert current_limit() is None


def test_blocks_of_scores_get_smaller_until_one_row_is_too_much() -> None:
    usual = rows_per_block(100_000)
    with memory_limit(resident() + 20 * 10**6):
        assert 1 <= rows_per_block(100_000) < usual
        with pytest.raises(ConfigError, match="Scoring 10,000,000 items for one user needs about"):
            rows_per_block(10**7)


def test_a_table_beyond_the_limit_is_refused_before_it_is_made() -> None:
    with (
        memory_limit("1GB"),
        pytest.raises(ConfigError, match=r"A table of 10,000,000 vectors of 64 .* 2.56 GB .* 1.00 GB; lower"),
    ):
        table_of(10**7, 64)


def test_reading_spills_within_its_share_and_says_what_it_needs(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 1000, size=(2000, 2))
    (tmp_path / "e.csv").write_text("user,item\n" + "".join(f"{u},{i}\n" for u, i in rows.tolist()))
    with memory_limit(resident() + 300 * 10**6):
        assert len(towpath.read(tmp_path / "e.csv").interactions) > 1900
    with (
        memory_limit(resident() + 50 * 10**6),
        pytest.raises(ConfigError, match=r"Reading or splitting events needs about .* limit of memory is"),
    ):
        towpath.read(tmp_path / "e.csv")


def test_a_fit_that_took_more_than_it_may_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    split = small_split()
    with memory_limit(resident() + 10**9):
        assert len(towpath.fit(split, "mf", epochs=2).history) == 2
        monkeypatch.setattr(memory, "peak", lambda: 10**12)
        with pytest.raises(ConfigError, match=r"Training took 1,000.00 GB, and the limit of memory"):
            towpath.fit(split, "mf", epochs=2)


def test_training_beyond_the_limit_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "resident", lambda: 0)
    needed = 3 * 4 * (60 * 2 + 40 * 2 + 1) + 24 * 600
    with (
        memory_limit(needed - 1),
        pytest.raises(ConfigError, match="Training mf on 600 events needs about"),
    ):
        towpath.fit(small_split(), "mf", embedding_dim=1, epochs=1)


@pytest.mark.parametrize(
    "verb", ["fit", "compare", "tune", "sweep", "refit", "update", "evaluate", "recommend"]
)
def test_the_verbs_take_a_limit(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert "--memory" in capsys.readouterr().out


def test_without_a_limit_nothing_is_refused() -> None:
    limit_memory(None)
    memory.refuse_beyond(10**18, "Everything", "wait")
    memory.refuse_exceeded("Everything", "wait")
    assert memory.share_of_room(10**18, 10**17, "Everything") == 10**18
