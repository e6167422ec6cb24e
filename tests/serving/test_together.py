"""Which runs several processes can train, and what they do with the tables."""

import pytest

from small import small_split
from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.serving import together

SPLIT = small_split()
TABLES = 4 * (SPLIT.train.n_users + SPLIT.train.n_items) * 33  # bytes, with 32 numbers and a bias


@pytest.mark.parametrize(
    ("room", "workers", "expected"),
    [(8 * TABLES, 1, "copied"), (16 * TABLES, 2, "copied"), (16 * TABLES - 2, 2, "sharded")],
)
def test_tables_are_sharded_where_four_copies_exceed_half_of_the_room(
    room: int, workers: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "available", lambda: room)
    assert together.tables_for("auto", Recipe("mf"), SPLIT, workers) == expected


def test_the_limit_of_memory_is_that_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "current_limit", lambda: 8 * TABLES - 1)
    assert together.tables_for("auto", Recipe("mf"), SPLIT, 2) == "sharded"
    assert together.tables_for("copied", Recipe("mf"), SPLIT, 2) == "copied"
    assert together.tables_for("auto", Recipe("wide_deep"), SPLIT, 2) == "copied"


def test_what_cannot_be_sharded_is_said_before_anything_is_started() -> None:
    with pytest.raises(ConfigError, match="use --tables copied"):
        together.tables_for("sharded", Recipe("attention"), SPLIT, 2)


def test_a_method_that_cannot_be_shared_is_refused() -> None:
    together.refuse_other_methods("transport")
    with pytest.raises(ConfigError, match="plain and transport, and 'ipw' was given"):
        together.refuse_other_methods("ipw")


def test_the_library_of_impressions_is_refused() -> None:
    together.refuse_unshared(Recipe("mf", "transport"), SPLIT)
    together.refuse_unshared(Recipe("mf", "plain"), SPLIT)
    with pytest.raises(ConfigError, match="solver=game"):
        together.refuse_unshared(Recipe("mf", "transport", {"solver": "library"}), SPLIT)


def test_a_soft_game_is_refused_before_workers_start() -> None:
    with pytest.raises(ConfigError, match="relaxation=hard, and soft was given"):
        together.refuse_unshared(Recipe("mf", "transport", {"relaxation": "soft", "domain": "exact"}), SPLIT)
