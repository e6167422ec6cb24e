"""Encoded features: packing, what training has not seen, standardised numbers, and Parquet and back."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feature_tables import small_table, values_of
from towpath.data.feature_parquet import read_feature_table, write_feature_table
from towpath.data.features import (
    MISSING,
    UNSEEN,
    Feature,
    FeatureSchema,
    Labels,
    pack,
    unseen_values,
)

# Rows 0 to 3: colour red, blue, red, none; tags a and b, none, c, c; size 2, none, 4, 9.
TABLE = pack(
    (
        Feature("colour", "categorical", ("blue", "red")),
        Feature("size", "numeric"),
        Feature("tags", "multivalued", ("a", "b", "c")),
    ),
    4,
    [
        Labels(np.array([0, 1, 2]), np.array([1, 0, 1])),
        Labels(np.array([0, 0, 2, 3]), np.array([0, 1, 2, 2])),
    ],
    [np.array([2.0, np.nan, 4.0, 9.0])],
)


def test_packed_labels_are_those_of_each_row_and_column() -> None:
    assert [values_of(TABLE, row, 0) for row in range(4)] == [["red"], ["blue"], ["red"], ["-"]]
    assert [values_of(TABLE, row, 1) for row in range(4)] == [["a", "b"], ["-"], ["c"], ["c"]]
    assert TABLE.count(MISSING) == {"colour": 1, "tags": 1, "size": 1}


def test_values_that_training_lacks_are_unseen_and_the_frequent_come_first() -> None:
    fitted = TABLE.fitted(np.array([True, False, True, True]))
    assert [values_of(fitted, row, 0) for row in range(4)] == [["red"], ["?"], ["red"], ["-"]]
    assert fitted.labels[1].values == ("c", "a", "b")
    assert fitted.count(UNSEEN) == {"colour": 1, "tags": 0}
    assert unseen_values(fitted, None) == [
        "user feature colour: 1 users have a value that training lacks; it counts as unseen"
    ]


def test_numbers_are_standardised_by_training_rows_and_gaps_are_marked() -> None:
    fitted = TABLE.fitted(np.array([True, True, True, False]))
    assert (fitted.numeric[0].mean, fitted.numeric[0].scale) == (3.0, 1.0)
    assert fitted.standardised().tolist() == [[-1, 0], [0, 1], [1, 0], [6, 0]]


def test_a_constant_number_and_one_without_values_stay_finite() -> None:
    for column in ([5.0, 5.0], [np.nan, np.nan]):
        table = pack([Feature("n", "numeric")], 2, [], [np.array(column)]).fitted(np.ones(2, dtype=bool))
        assert (table.standardised()[:, 0] == 0).all()


def test_codes_of_all_columns_do_not_overlap() -> None:
    stacked, schema = TABLE.stacked_codes(), TABLE.schema
    assert schema.codes == (4, 5)
    assert schema.numbers == ("size",)
    assert schema.entries == len(stacked) == 9
    assert (stacked[TABLE.columns == 0] < 4).all()
    assert ((stacked[TABLE.columns == 1] >= 4) & (stacked[TABLE.columns == 1] < 9)).all()


def test_a_schema_survives_json() -> None:
    from dataclasses import asdict
    from json import dumps, loads

    schema = FeatureSchema(TABLE.schema)
    assert FeatureSchema.from_json(loads(dumps(asdict(schema)))) == schema


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 40),
    seed=st.integers(0, 5),
    training=st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_fitting_keeps_every_known_value_and_parquet_keeps_everything(
    rows: int, seed: int, training: list[bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    table, known = small_table(rows, seed), np.array(training[:rows])
    fitted = table.fitted(known)
    for column in range(2):
        kept = set(fitted.labels[column].values)
        for row in range(rows):
            before = ["?" if v != "-" and v not in kept else v for v in values_of(table, row, column)]
            assert values_of(fitted, row, column) == sorted(before)
            assert not known[row] or "?" not in before
    path: Path = tmp_path_factory.mktemp("features") / "table.parquet"
    write_feature_table(fitted, path)
    again = read_feature_table(path)
    assert again.features == fitted.features
    for name in ("starts", "codes", "numbers"):
        np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name))
