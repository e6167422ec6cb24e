from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from towpath import memory
from towpath.data import encoding, split
from towpath.data.cleaning import Cleaning
from towpath.data.columns import Columns
from towpath.data.event_arrays import stable_order
from towpath.data.interactions import COLUMNS
from towpath.data.meaning import Positive
from towpath.data.sources import Reading, read
from towpath.errors import ConfigError, DataError

INTEGERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3), st.integers(0, 2**40))


@given(st.lists(st.tuples(INTEGERS, INTEGERS), max_size=40))
def test_the_order_is_that_of_a_stable_sort_by_both_keys(rows: list[tuple[int, int]]) -> None:
    first, second = (np.array([row[side] for row in rows], dtype=np.int64) for side in (0, 1))
    assert stable_order(second, first).tolist() == sorted(range(len(rows)), key=lambda place: rows[place])


def test_a_key_that_does_not_fit_next_to_its_place_takes_several_passes() -> None:
    rng = np.random.default_rng(0)
    for kind in (np.int32, np.int64, np.bool_):
        span = (0, 2) if kind is np.bool_ else (np.iinfo(kind).min, np.iinfo(kind).max)
        key = rng.integers(*span, 100_000).astype(kind)
        key[1::2] = key[::2]  # ties
        assert np.array_equal(stable_order(key), np.argsort(key, kind="stable"))


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]),
        st.integers(0, 3),
        st.one_of(st.none(), st.integers(1, 3)),
        st.sampled_from([None, float("nan"), 1.0, 3.5, 5.0]),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)
NAMES = ("user", "item", "time", "value", "label", "exposure")
CLEANINGS = st.builds(
    Cleaning,
    missing=st.just("drop"),
    min_rating=st.sampled_from([None, 3.5]),
    repeats=st.sampled_from(["first", "last", "allow"]),
    min_per_item=st.integers(1, 3),
    min_per_user=st.integers(1, 3),
    max_per_user=st.sampled_from([None, 6]),
    filter=st.sampled_from(["one-pass", "k-core"]),
)


@settings(deadline=None, max_examples=60)
@given(EVENTS, CLEANINGS, st.sets(st.sampled_from(NAMES[2:])))
def test_arrays_give_what_the_statements_give(
    rows: list[tuple[Any, ...]],  # values of several types
    cleaning: Cleaning,
    left_out: set[str],
) -> None:
    if "label" not in left_out:  # what was not shown cannot have been clicked
        rows = [(*row[:4], row[4] and row[5], row[5]) for row in rows]
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(NAMES)})
    table = table.drop_columns(sorted(left_out))
    found = [_outcome(table, cleaning, in_memory) for in_memory in (True, False)]
    assert found[0] == found[1]


def _outcome(table: pa.Table, cleaning: Cleaning, in_memory: bool) -> object:
    """Steps, ids and columns, or the sentence of the error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "has_room", lambda size: in_memory)
        try:
            reading = read(table, cleaning=cleaning, complete=False)
        except DataError as error:
            return str(error)
    return _comparable(reading)


def _comparable(reading: Reading) -> object:
    rows = reading.interactions.rows
    columns = [_bits(getattr(rows, name)) for name in COLUMNS]
    return reading.steps, rows.user_ids.values.to_pylist(), rows.item_ids.values.to_pylist(), columns


def _bits(column: NDArray[Any] | None) -> tuple[str, bytes] | None:
    return None if column is None else (column.dtype.str, column.tobytes())


def test_what_does_not_fit_and_what_has_names_stays_in_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    monkeypatch.setattr(encoding, "has_room", lambda size: bool(asked.append(size)))
    monkeypatch.setattr(encoding, "_encode_in_memory", None)
    plain = {"user": ["a", "a", "b"], "item": [1, 2, 1], "time": [1, 2, 3]}
    assert len(read(pa.table(plain)).interactions) == 3
    assert asked == [3 * (32 + 4 + 4 + 8)]
    named = pa.table(plain | {"request": ["x", "x", "y"], "label": [1, 0, 1]})
    assert len(read(named, columns=Columns(label="label"), positive=Positive()).interactions) == 2
    assert len(asked) == 1


@settings(deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=12))
def test_the_last_two_of_arrays_are_those_of_the_statement(lengths: list[int]) -> None:
    users = np.repeat(np.arange(len(lengths)), lengths)
    table = pa.table({"user": users, "item": np.arange(len(users)), "time": np.arange(len(users))})
    events = read(table, complete=False).interactions
    assert np.array_equal(split._last_two(events), split._parts(events, split.sql.LEAVE_LAST_TWO, "duckdb"))


def test_a_split_that_does_not_fit_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"user": [1, 1, 1, 2], "item": [1, 2, 3, 1], "time": [1, 2, 3, 4]})
    events = read(table).interactions
    monkeypatch.setattr(memory, "resident", lambda: 10**9 - 4 * (1 + 4 + 4 + 8) + 1)
    with memory.memory_limit("1GB"), pytest.raises(ConfigError, match="Splitting 4 events needs about 0 MB"):
        split.split_leave_last_two(events)
    monkeypatch.setattr(memory, "resident", lambda: 10**9 - 4 * (1 + 4 + 4 + 8))
    with memory.memory_limit("1GB"):
        assert len(split.split_leave_last_two(events).test) == 1
