"""Feature files of every format, the rules for what their columns are, and every way they can be wrong."""

import json
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from feature_tables import values_of
from towpath.data.columns import Columns
from towpath.data.feature_files import read_features
from towpath.data.feature_kinds import FeatureFiles, FeatureSpec, GivenColumns, parse_feature_spec
from towpath.data.features import MISSING
from towpath.data.inspect import inspect
from towpath.data.sources import read
from towpath.data.split import load_split, save_split, split_by_time, split_leave_last_two
from towpath.data.vocabulary import Vocabulary
from towpath.errors import ConfigError, DataError

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="needs the real sets in ../shared/data")
IDS = Vocabulary(pa.array([1, 2, 3, 4]))
HEADER = "user,sex,age,tags"
ROWS = ["1,F,20.5,a|b", "2,M,,b", "9,M,3.5,c|a", "3,,50,"]


def write(folder: Path, *rows: str, header: str = HEADER, name: str = "users.csv") -> Path:
    (folder / name).write_text("\n".join([header, *rows]) + "\n")
    return folder / name


def sentence(path: Path, **specs: FeatureSpec) -> str:
    with pytest.raises(DataError) as said:
        read_features([path], "user", IDS, GivenColumns(specs))
    return str(said.value)


def test_rows_are_joined_by_id_and_everything_else_is_counted(tmp_path: Path) -> None:
    table, report = read_features([write(tmp_path, *ROWS)], "user", IDS, GivenColumns())
    assert [values_of(table, row, 0) for row in range(4)] == [["F"], ["M"], ["-"], ["-"]]
    assert [values_of(table, row, 1) for row in range(4)] == [["a", "b"], ["b"], ["-"], ["-"]]
    np.testing.assert_array_equal(table.numbers[:, 0], np.array([20.5, np.nan, 50, np.nan], np.float32))
    assert (report.rows, report.unknown, report.ids, report.without_row) == (4, 1, 4, 1)
    assert report.missing == table.count(MISSING) == {"sex": 2, "tags": 2, "age": 2}
    said = " / ".join(report.sentences())
    assert "sex categorical (2 values), age numeric, tags multivalued (2 values)" in said
    assert "1 of 4 rows are of users without events: ignored" in said
    assert "1 of 4 users have no row: all values missing" in said
    assert "user feature age: missing for 2 of 4" in said


def test_parquet_and_json_lists_are_multivalued(tmp_path: Path) -> None:
    tags, sizes = [["a", "b"], ["b"], None, []], [1.5, 2.5, None, 3.5]
    columns = {"id": [1, 2, 3, 4], "tags": tags, "size": sizes, "kind": [True, False, None, True]}
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "f.jsonl").write_text("\n".join(lines) + "\n")
    first, _ = read_features([tmp_path / "f.parquet"], "item", IDS, GivenColumns())
    second, _ = read_features([tmp_path / "f.jsonl"], "item", IDS, GivenColumns())
    for table in (first, second):
        assert [values_of(table, row, 0) for row in range(4)] == [["a", "b"], ["b"], ["-"], ["-"]]
        assert [values_of(table, row, 1) for row in range(4)] == [["true"], ["false"], ["-"], ["true"]]
        np.testing.assert_array_equal(table.numbers[:, 0], np.array([1.5, 2.5, np.nan, 3.5], np.float32))


@pytest.mark.parametrize(
    "ids", [["a", "ü b"], [UUID(int=1), UUID(int=2)], [7, 12]], ids=["text", "uuid", "integer"]
)
def test_ids_of_every_type_are_found(tmp_path: Path, ids: list[object]) -> None:
    events = tmp_path / "events.parquet"
    column = pa.array([i.bytes for i in ids], pa.uuid()) if isinstance(ids[0], UUID) else pa.array(ids)
    pq.write_table(pa.table({"user": column, "item": [1, 2], "time": [1, 2]}), events)
    path = write(tmp_path, *(f"{one},{n}" for n, one in enumerate(ids)), header="user,group")
    reading = read(events, features=FeatureFiles(users=path))
    assert reading.features[0].without_row == 0
    table = reading.interactions.user_features
    assert table is not None
    assert [values_of(table, row, 0) for row in range(2)] == [["0"], ["1"]]


def test_rules_tell_kinds_apart_and_leave_out_what_names_each_row(tmp_path: Path) -> None:
    rows = [f"{n},title {n},{n % 3},{n / 4},{n * 7},x{n % 2},,a;b" for n in range(60)]
    path = write(tmp_path, *rows, header="item,title,level,price,views,group,nothing,tags")
    ids = Vocabulary(pa.array(range(60)))
    table, report = read_features([path], "item", ids, GivenColumns())
    kinds = {feature.name: feature.kind for feature in table.features}
    assert kinds == {
        "level": "categorical",
        "price": "numeric",
        "views": "numeric",
        "group": "categorical",
        "tags": "categorical",
    }
    assert report.left_out == {
        "title": "has 60 different values in 60 rows, too many for a category",
        "nothing": "has no values",
    }
    told = {"tags": "multivalued:;", "level": "numeric", "title": "categorical", "price": "skip"}
    specs = {column: parse_feature_spec(column, kind) for column, kind in told.items()}
    other, _ = read_features([path], "item", ids, GivenColumns(specs))
    kinds = {feature.name: feature.kind for feature in other.features}
    assert (kinds["tags"], kinds["level"], kinds["title"]) == ("multivalued", "numeric", "categorical")
    assert "price" not in kinds
    assert other.features[-1].values == ("a", "b")


def test_a_value_counts_once_in_a_row_and_blanks_do_not(tmp_path: Path) -> None:
    table, _ = read_features([write(tmp_path, "1,F,1.5, a |b||a", "2, M,2,b")], "user", IDS, GivenColumns())
    assert values_of(table, 0, 1) == ["a", "b"]
    assert table.labels[0].values == ("F", "M")


def test_duplicate_ids_are_refused_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "1,F,1,a", "2,M,2,b", " 1,M,3,c")
    assert sentence(path) == (
        f"Each user should have one row of features, but 1 has several (first: '1' in line 2 of {path} and "
        f"line 4 of {path}). Keep one row of each."
    )


def test_rows_without_an_id_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "1,F,1,a", ",M,2,b")
    assert f"needs a user id; 1 have none (first: line 3 of {path})" in sentence(path)


def test_words_in_a_numeric_column_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "1,F,1,a", "2,M,young,b", "3,M,inf,b", "4,M,nan,b")
    assert sentence(path, age=FeatureSpec("numeric")) == (
        "The numeric feature 'age' should hold numbers; 2 of its values are none (first: 'young' in line 3 "
        f"of {path}). Mend them, or read it as categories with --feature age=categorical."
    )


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("name,sex,age,tags", "need a column of user ids, but the columns of"),
        ("user,sex,sex,tags", "Each column needs a name of its own"),
    ],
)
def test_headers_that_cannot_be_understood_are_refused(tmp_path: Path, header: str, words: str) -> None:
    assert words in sentence(write(tmp_path, *ROWS, header=header))


def test_a_file_with_nothing_to_use_is_refused(tmp_path: Path) -> None:
    rows = [f"{n},name {n}" for n in range(50)]
    said = sentence(write(tmp_path, *rows, header="user,name"))
    assert "No column" in said
    assert "50 different values" in said
    (tmp_path / "bare.jsonl").write_text('{"user": 1}\n{"user": 2}\n')
    assert "should have columns next to its user ids" in sentence(tmp_path / "bare.jsonl")
    assert "does not parse" in sentence(write(tmp_path, "1,F,1,a", "2,M"))


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ({"sexx": "categorical"}, "no feature 'sexx'; did you mean 'sex'"),
        ({"sex": "category"}, "no kind of feature .asked for 'sex'. 'category'; did you mean 'categorical'"),
        ({"sex": "numeric:;"}, "Only a multi-valued feature has a separator"),
    ],
)
def test_wishes_that_cannot_be_are_refused(tmp_path: Path, kinds: dict[str, str], words: str) -> None:
    write(tmp_path, "1,a,1", "2,b,2", header="user,item,time", name="events.csv")
    features = FeatureFiles(users=write(tmp_path, *ROWS), kinds=kinds)
    with pytest.raises(ConfigError, match=words):
        read(tmp_path / "events.csv", features=features)


def test_the_column_of_ids_is_the_one_that_the_events_have_too(tmp_path: Path) -> None:
    write(tmp_path, "7,a,1", "8,b,2", header="who,what,when", name="events.csv")
    people = write(tmp_path, "1,8,x", "2,7,y", header="id,who,group")
    columns = Columns(user="who", item="what", time="when")
    table = read(tmp_path / "events.csv", columns=columns, features=FeatureFiles(users=people))
    assert table.features[0].unknown == 0
    things = write(tmp_path, "a,red", header="name,colour", name="things.csv")
    with pytest.raises(DataError, match=r"columns of .* are name, colour"):
        read(tmp_path / "events.csv", columns=columns, features=FeatureFiles(items=things))
    artists = write(tmp_path, "a,Abba,x", "b,Blur,y", header="id,artist,genre", name="artists.csv")
    found = read(tmp_path / "events.csv", columns=columns, features=FeatureFiles(items=artists))
    assert found.features[0].without_row == 0


def test_a_feature_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    write(tmp_path, "1,a,1", "2,b,2", header="user,item,time", name="events.csv")
    with pytest.raises(DataError, match=r"no file .*nowhere\.csv"):
        read(tmp_path / "events.csv", features=FeatureFiles(items=tmp_path / "nowhere.csv"))


def events_with_features(folder: Path) -> Path:
    """Ten users of whom the last has events only at the very end, and so not in training."""
    rows = [f"{user},{(user + n) % 8},{user + 20 * n}" for user in range(9) for n in range(6)]
    rows += [f"9,{n},{1000 + n}" for n in range(3)]
    return write(folder, *rows, header="user,item,time", name="events.csv")


def test_values_of_users_outside_training_are_unseen_and_the_split_keeps_it(tmp_path: Path) -> None:
    users = write(tmp_path, *(f"{n},{'new' if n == 9 else 'old'}" for n in range(10)), header="user,group")
    data = read(events_with_features(tmp_path), features=FeatureFiles(users=users)).interactions
    split = split_by_time(data, validation_share=0.2, test_share=0.2)
    assert split.test.user_features is split.train.user_features
    table = split.train.user_features
    assert table is not None
    assert table.labels[0].values == ("old",)
    assert values_of(table, 9, 0) == ["?"]
    save_split(split, tmp_path / "split")
    assert load_split(tmp_path / "split").fingerprint == split.fingerprint


def test_fingerprints_tell_features_apart_and_are_unchanged_without(tmp_path: Path) -> None:
    events = events_with_features(tmp_path)
    plain = split_leave_last_two(read(events).interactions)
    twos = FeatureFiles(users=write(tmp_path, *(f"{n},{n % 2}" for n in range(10)), header="user,g"))
    first = split_leave_last_two(read(events, features=twos).interactions)
    threes = FeatureFiles(users=write(tmp_path, *(f"{n},{n % 3}" for n in range(10)), header="user,g"))
    second = split_leave_last_two(read(events, features=threes).interactions)
    assert len({plain.fingerprint, first.fingerprint, second.fingerprint}) == 3
    bare = first.train.with_features(None, None)
    assert type(first)(bare, plain.validation, plain.test, plain.description).fingerprint == plain.fingerprint


@needs_shared
def test_movielens_1m_brings_its_features() -> None:
    reading = read("ml-1m", data_dir=SHARED)
    users, items = reading.interactions.user_features, reading.interactions.item_features
    assert users is not None
    assert items is not None
    assert {f.name: len(f.values) for f in users.features} == {
        "gender": 2, "age": 7, "occupation": 21, "region": 10
    }  # fmt: skip
    assert {f.name: len(f.values) for f in items.features} == {"genres": 18, "years": 18}
    assert values_of(items, 0, 0) == ["Animation", "Children's", "Comedy"]
    assert values_of(items, 0, 1) == ["1995"]
    assert values_of(users, 0, 0) + values_of(users, 0, 3) == ["F", "4"]
    assert [report.unknown for report in inspect(reading).features] == [0, 177]


@needs_shared
def test_movielens_100k_brings_its_features() -> None:
    reading = read("ml-100k", data_dir=SHARED)
    items = reading.interactions.item_features
    assert items is not None
    assert values_of(items, 0, 0) == ["animation", "childrens", "comedy"]
    assert reading.features[1].missing == {"genres": 0, "years": 2}
