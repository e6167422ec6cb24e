from datetime import date
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.data.vocabulary import UNKNOWN, Vocabulary

IDS = st.one_of(
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True),
    st.lists(st.dates(), min_size=1, unique=True),
    st.lists(st.binary(), min_size=1, unique=True),
)


@given(IDS)
def test_ids_come_back_unchanged(ids: list[object]) -> None:
    vocabulary = Vocabulary(pa.array(ids))
    codes = vocabulary.codes(ids)
    assert codes.tolist() == list(range(len(ids)))
    assert vocabulary.ids(codes[::-1]) == ids[::-1]


@given(st.lists(st.uuids(), min_size=1, unique=True))
def test_uuids_come_back_unchanged_and_are_found_as_text(ids: list[UUID]) -> None:
    vocabulary = Vocabulary(pa.array([one.bytes for one in ids], pa.uuid()))
    assert vocabulary.ids(vocabulary.codes(ids)) == ids
    assert vocabulary.codes([str(one) for one in ids]).tolist() == list(range(len(ids)))
    assert vocabulary.code("no uuid") == UNKNOWN


def test_text_finds_numbers_and_dates_and_strangers_are_unknown() -> None:
    assert Vocabulary(pa.array([42, 7])).codes(["7", "seven", 7.0, None]).tolist() == [1, UNKNOWN, 1, UNKNOWN]
    assert Vocabulary(pa.array(["42"])).code(42) == 0
    assert Vocabulary(pa.array([date(2020, 1, 2)])).code("2020-01-02") == 0


@given(
    st.lists(st.text("abü", max_size=4), min_size=1, unique=True),
    st.text("abü", max_size=4),
    st.sampled_from([pa.string(), pa.large_string()]),
    st.integers(0, 2),
)
def test_one_text_is_found_where_many_are(ids: list[str], one: str, kind: pa.DataType, cut: int) -> None:
    vocabulary = Vocabulary(pa.array(ids, kind)[cut:])
    assert vocabulary.code(one) == vocabulary.codes([one])[0]
    assert [vocabulary.code(own) for own in ids[cut:]] == list(range(len(vocabulary)))


@given(st.lists(st.integers(-120, 120), unique=True), st.sampled_from([pa.int8(), pa.int64(), pa.uint16()]))
def test_one_number_written_as_text_is_found_where_many_are(ids: list[int], kind: pa.DataType) -> None:
    vocabulary = Vocabulary(pa.array(ids if kind != pa.uint16() else list({abs(one) for one in ids}), kind))
    for text in ("0", "-7", "7", "007", "7.0", "", "+7", "99999", "123456789012345678901"):
        assert vocabulary.code(text) == vocabulary.codes([text])[0]


@given(IDS, st.data())
def test_what_is_hashed_depends_on_the_ids_and_not_on_their_layout(
    ids: list[object], data: st.DataObject
) -> None:
    whole = pa.array(ids)
    start = data.draw(st.integers(0, len(ids) - 1))
    sliced, fresh = Vocabulary(whole[start:]), Vocabulary(pa.array(ids[start:], whole.type))
    for one, other in zip(sliced.hashable(), fresh.hashable(), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(("one", "other"), [(["ab", "c"], ["a", "bc"]), (["a"], ["b"])])
def test_other_ids_hash_otherwise(one: list[str], other: list[str]) -> None:
    first, second = Vocabulary(pa.array(one)).hashable(), Vocabulary(pa.array(other)).hashable()
    assert any(not np.array_equal(a, b) for a, b in zip(first, second, strict=True))
