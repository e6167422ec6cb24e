from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from towpath.data.cleaning import Cleaning
from towpath.data.sources import Reading, read
from towpath.errors import ConfigError, DataError

Pairs = list[tuple[int, int]]


def read_pairs(folder: Path, pairs: Pairs, cleaning: Cleaning) -> Reading:
    (folder / "e.csv").write_text("user,item,rating,time\n" + "".join(f"{u},{i},1,0\n" for u, i in pairs))
    return read(folder / "e.csv", cleaning=cleaning)


def pairs_of(reading: Reading) -> Pairs:
    data = reading.interactions
    return list(zip(data.user_ids.ids(data.users), data.item_ids.ids(data.items), strict=True))


def test_each_step_says_what_it_dropped(tmp_path: Path) -> None:
    rows = ["1,a,5,1", "1,a,4,2", "1,b,5,3", "2,a,5,4", "2,b,1,5", "2,c,5,6", "3,a,5,7", "2,b,5,8"]
    (tmp_path / "e.csv").write_text("user,item,rating,time\n" + "\n".join(rows) + "\n")
    cleaning = Cleaning(min_rating=4, min_per_item=2, min_per_user=2)
    steps = read(tmp_path / "e.csv", cleaning=cleaning).steps
    assert [(step.name, step.dropped_rows, step.rows, step.users, step.items) for step in steps] == [
        ("read", 0, 8, 3, 3),
        ("min_rating 4", 1, 7, 3, 3),
        ("repeats: first", 1, 6, 3, 3),
        ("min_per_item 2", 1, 5, 3, 2),
        ("min_per_user 2", 1, 4, 2, 2),
    ]


@pytest.mark.parametrize(("repeats", "times"), [("first", [1, 2]), ("last", [3, 4]), ("allow", [1, 2, 3, 4])])
def test_repeats_keep_the_first_the_last_or_all(tmp_path: Path, repeats: str, times: list[int]) -> None:
    rows = ["1,a,3", "2,b,2", "1,a,1", "2,b,4"]
    (tmp_path / "e.csv").write_text("user,item,time\n" + "\n".join(rows) + "\n")
    found = read(tmp_path / "e.csv", cleaning=Cleaning(repeats=repeats)).interactions.times  # type: ignore[arg-type]  # parametrised
    assert found is not None
    assert sorted(found.tolist()) == times


def test_one_pass_counts_items_once_and_a_k_core_until_nothing_moves(tmp_path: Path) -> None:
    # Dropping user 3, who has one event left, takes item c below two; only the k-core sees that.
    pairs = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (1, 3)]
    once = read_pairs(tmp_path, pairs, Cleaning(min_per_item=2, min_per_user=2))
    core = read_pairs(tmp_path, pairs, Cleaning(min_per_item=2, min_per_user=2, filter="k-core"))
    assert sorted(pairs_of(once)) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    assert sorted(pairs_of(core)) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert core.steps[-1].name == "k-core: 2 per item, 2 per user (3 rounds)"
    whole = read_pairs(tmp_path, [(1, 1), (1, 2), (2, 1), (2, 2)], Cleaning(min_per_item=2, filter="k-core"))
    assert whole.steps[-1].name == "k-core: 2 per item, 1 per user (1 round)"
    assert core.steps[-1].dropped_rows == 2


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=5, max_size=60, unique=True))
def test_a_k_core_has_no_rare_user_or_item_and_is_the_largest_such(tmp_path: Path, pairs: Pairs) -> None:
    left = set(pairs)
    while True:  # the definition, one pair at a time
        users, items = Counter(u for u, _ in left), Counter(i for _, i in left)
        kept = {(u, i) for u, i in left if users[u] >= 2 and items[i] >= 2}
        if kept == left:
            break
        left = kept
    cleaning = Cleaning(min_per_item=2, min_per_user=2, filter="k-core")
    if left:
        assert set(pairs_of(read_pairs(tmp_path, pairs, cleaning))) == left
    else:
        with pytest.raises(DataError, match="No rows are left"):
            read_pairs(tmp_path, pairs, cleaning)


def test_users_with_too_many_events_are_dropped_whole(tmp_path: Path) -> None:
    pairs = [(1, i) for i in range(5)] + [(2, 0), (2, 1), (3, 1)]
    assert sorted(pairs_of(read_pairs(tmp_path, pairs, Cleaning(max_per_user=4)))) == [(2, 0), (2, 1), (3, 1)]


def test_codes_are_dense_after_cleaning(tmp_path: Path) -> None:
    data = read_pairs(
        tmp_path, [(9, 1), (5, 1), (5, 2), (7, 2), (9, 2)], Cleaning(min_per_user=2)
    ).interactions
    assert data.user_ids.values.to_pylist() == [5, 9]
    assert data.users.tolist() == [0, 0, 1, 1]
    assert data.items.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("cleaning", "step"),
    [
        (Cleaning(min_rating=2), "min_rating 2"),
        (Cleaning(min_per_item=9), "min_per_item 9"),
        (Cleaning(min_per_user=9), "min_per_user 9"),
    ],
)
def test_no_rows_left_names_the_step(tmp_path: Path, cleaning: Cleaning, step: str) -> None:
    with pytest.raises(DataError, match=f"No rows are left after the step '{step}'"):
        read_pairs(tmp_path, [(1, 1), (2, 2), (1, 2)], cleaning)


def test_one_user_left_names_the_step(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'min_per_user 2' there is one user only"):
        read_pairs(tmp_path, [(1, 1), (1, 2), (2, 2)], Cleaning(min_per_user=2))


def test_min_rating_needs_ratings(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("user,item\n1,2\n2,3\n")
    with pytest.raises(DataError, match="min_rating needs a column of ratings"):
        read(tmp_path / "e.csv", cleaning=Cleaning(min_rating=1))


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'first'"):
        Cleaning(repeats="frist")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ConfigError, match="k-core"):
        Cleaning(filter="kcore")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ConfigError, match="at least 1"):
        Cleaning(min_per_item=0)
    with pytest.raises(ConfigError, match="max_per_user"):
        Cleaning(min_per_user=5, max_per_user=4)
