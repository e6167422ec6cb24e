"""Ways of searching a grid, asked about functions whose best point is known."""

import math
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.errors import ConfigError
from towpath.experiments.search import Search, Values, coordinate_wise, halving, key_of, suggested, with_start

GRID = {"a": (1, 2, 3), "b": (1, 2, 3), "c": ("x", "y")}
START = {"a": 1, "b": 1, "c": "x"}


def run(search: Search, score: Callable[[Values], float]) -> list[list[Values]]:
    """Everything that the search asks for, batch by batch."""
    batches = [next(search)]
    try:
        while True:
            batches.append(search.send([score(values) for values in batches[-1]]))
    except StopIteration:
        return batches


def flat(batches: list[list[Values]]) -> list[tuple[object, ...]]:
    return [tuple(values.values()) for batch in batches for values in batch]


def test_coordinates_are_asked_one_after_the_other_from_the_best_so_far() -> None:
    def score(values: Values) -> float:
        return -abs(values["a"] - 2) - abs(values["b"] - 3)

    batches = run(coordinate_wise(GRID, START, rounds=5), score)
    assert [flat([batch]) for batch in batches] == [
        [(1, 1, "x")],
        [(2, 1, "x"), (3, 1, "x")],
        [(2, 2, "x"), (2, 3, "x")],
        [(2, 3, "y")],
        # the second round: what is not known yet around (2, 3, x); y was no better, so x stays
        [(1, 3, "x"), (3, 3, "x")],
    ]


def test_a_second_round_finds_what_the_first_could_not() -> None:
    table = {(1, 1): 1, (2, 1): 0, (1, 2): 2, (2, 2): 3}

    def score(values: Values) -> float:
        return table[values["a"], values["b"]]

    grid, start = {"a": (1, 2), "b": (1, 2)}, {"a": 1, "b": 1}
    assert (2, 2) not in flat(run(coordinate_wise(grid, start, rounds=1), score))
    assert (2, 2) in flat(run(coordinate_wise(grid, start, rounds=2), score))


def test_what_cannot_be_trained_never_wins() -> None:
    def score(values: Values) -> float:
        return -math.inf if values["a"] == 1 else -values["a"]

    asked = flat(run(coordinate_wise(GRID, START, rounds=3), score))
    assert (2, 2, "x") in asked  # from a = 2 on
    assert (3, 2, "x") not in asked


@given(st.integers(1, 40))
def test_no_more_than_the_most_and_none_twice(most: int) -> None:
    asked = flat(run(coordinate_wise(GRID, START, rounds=9, most=most), lambda v: v["a"] * v["b"]))
    assert len(asked) == len(set(asked)) <= most
    assert len(asked) == min(
        most, len(flat(run(coordinate_wise(GRID, START, rounds=9), lambda v: v["a"] * v["b"])))
    )


@given(st.tuples(*[st.permutations([0.0, 1.0, 2.0, 3.0])] * 3))
def test_where_settings_do_not_interact_one_round_finds_the_best(worth: tuple[list[float], ...]) -> None:
    grid = dict.fromkeys("abc", (0, 1, 2, 3))

    def score(values: Values) -> float:
        return sum(gain[values[name]] for gain, name in zip(worth, "abc", strict=True))

    asked = run(coordinate_wise(grid, dict.fromkeys("abc", 0), rounds=1), score)
    best = max((values for batch in asked for values in batch), key=score)
    assert score(best) == 9


def test_the_start_joins_the_grid_in_order() -> None:
    assert with_start({"a": (3, 1)}, {"a": 2}) == {"a": (1, 2, 3)}
    assert with_start({"c": ("y",)}, {"c": "x"}) == {"c": ("x", "y")}
    assert with_start({"b": (True, False)}, {"b": False}) == {"b": (False, True)}


def test_optuna_begins_with_the_start_and_stays_on_the_grid() -> None:
    asked = flat(run(suggested(GRID, START, trials=11, seed=0), lambda v: v["a"]))
    assert asked[0] == (1, 1, "x")
    assert len(asked) == 11
    assert all(one in values for tried in asked for one, values in zip(tried, GRID.values(), strict=True))


def test_optuna_asks_the_same_for_the_same_seed_and_learns_from_scores() -> None:
    def bowl(values: Values) -> float:
        return -math.inf if values["b"] == 1 else -((values["a"] - 7) ** 2)

    grid = {"a": tuple(range(20)), "b": (0, 1)}
    one, two, other = (
        flat(run(suggested(grid, {"a": 0, "b": 0}, trials=60, seed=seed), bowl)) for seed in (1, 1, 2)
    )
    assert one == two != other
    late = [abs(a - 7) for a, b in one[40:] if b == 0]
    assert len(late) > 12  # of 20: it has learned what cannot be trained; at random it would be 10
    assert sum(late) / len(late) < 4  # and where the best is; at random it would be 5.8


def test_without_optuna_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"towpath\[tune\]"):
        next(suggested(GRID, START, trials=3, seed=0))


def test_keys_do_not_depend_on_the_order() -> None:
    assert key_of({"a": 1, "b": (2,)}) == key_of({"b": [2], "a": 1}) != key_of({"a": 1, "b": [3]})


def test_halving_trains_the_best_third_three_times_as_long() -> None:
    grid = {"a": tuple(range(5)), "b": tuple(range(2))}

    def score(values: Values) -> float:
        return values["a"] + values.get("epochs", 100) / 1000

    batches = run(halving(grid, {"a": 0, "b": 0}, epochs=50, seed=0, left=lambda: 1.0), score)
    asked = [values for batch in batches for values in batch]
    assert asked[0] == {"a": 0, "b": 0}
    by_epochs = {e: [v for v in asked[1:] if v.get("epochs") == e] for e in (3, 9, None)}
    assert [len(of) for of in by_epochs.values()] == [9, 3, 1]
    assert len({key_of(values) for values in by_epochs[3]}) == 9  # nine others of ten, each once
    best = sorted((values["a"] for values in by_epochs[3]), reverse=True)[:3]
    assert [values["a"] for values in by_epochs[9]] == best
    assert by_epochs[None][0]["a"] == 4


def test_halving_ends_when_nothing_is_left_and_skips_rungs_beyond_the_epochs() -> None:
    left = iter([1.0, 1.0, 0.0])
    grid = {"a": tuple(range(40))}
    batches = run(halving(grid, {"a": 0}, epochs=3, seed=1, left=lambda: next(left)), lambda values: 0.0)
    assert [len(batch) for batch in batches] == [1, 3]
    assert all("epochs" not in values for batch in batches for values in batch)
