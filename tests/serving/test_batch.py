"""Lists of many users in a file, block by block."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import towpath
from small import small_split
from towpath.data.id_files import read_id_file
from towpath.errors import ConfigError, DataError
from towpath.serving import batch
from towpath.serving.batch import Written, audience_of, everyone, write_lists
from towpath.serving.catalogue import ListRules

SPLIT = small_split()
SERVED = towpath.recommender(towpath.fit(SPLIT, "ease", ridge=10.0), SPLIT)


def by_user(rows: list[dict]) -> dict[str, list[tuple]]:
    found: dict[str, list[tuple]] = {}
    for row in rows:
        found.setdefault(row["user"], []).append((row["rank"], row["item"], row["score"]))
    return found


def test_everyones_lists_are_those_of_recommend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_ROWS_AT_ONCE", 7 * 30)  # seven users at a time
    steps: list[int] = []
    done = write_lists(SERVED, everyone(SERVED), ListRules(30), tmp_path / "l.parquet", steps.append)
    table = pq.read_table(tmp_path / "l.parquet")
    assert table.column_names == ["user", "item", "rank", "score"]
    assert done == Written(users=60, rows=table.num_rows, fallback_users=0)
    assert steps == [7, 14, 21, 28, 35, 42, 49, 56, 60]
    rows = by_user(table.to_pylist())
    for answer in SERVED.recommend_many([f"u{n}" for n in range(60)], 30):
        places = range(1, len(answer.items) + 1)
        assert rows[answer.user] == list(zip(places, answer.items, answer.scores, strict=True))
    assert min(map(len, rows.values())) == 28  # short lists are not filled up


def test_csv_has_the_same_rows(tmp_path: Path) -> None:
    for name in ("l.csv", "l.parquet"):
        write_lists(SERVED, audience_of(SERVED, ["u5", "u1"]), ListRules(3), tmp_path / name)
    read = pa.csv.read_csv(tmp_path / "l.csv")
    assert read.column("user").to_pylist() == ["u5"] * 3 + ["u1"] * 3
    assert read.to_pylist() == [
        {**row, "score": pytest.approx(row["score"], rel=1e-5)}
        for row in pq.read_table(tmp_path / "l.parquet").to_pylist()
    ]


def test_strangers_are_counted_and_keep_their_ids(tmp_path: Path) -> None:
    audience = audience_of(SERVED, ["u5", "nobody"])
    done = write_lists(SERVED, audience, ListRules(3), tmp_path / "l.parquet")
    assert done.fallback_users == 1
    table = pq.read_table(tmp_path / "l.parquet")
    assert table.column("user").to_pylist() == ["u5"] * 3 + ["nobody"] * 3
    assert table.column("item").to_pylist()[3:] == list(SERVED.recommend("nobody", 3).items)


def test_candidates_and_filters_are_kept(tmp_path: Path) -> None:
    rules = ListRules(40, np.array([0, 1, 2]), hide_seen=False)
    done = write_lists(SERVED, everyone(SERVED), rules, tmp_path / "l.csv")
    assert done.rows == 180


def test_an_unknown_ending_and_a_failure_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"ends in \.parquet or \.csv, and .*lists.xlsx' was given"):
        write_lists(SERVED, everyone(SERVED), ListRules(3), tmp_path / "lists.xlsx")
    monkeypatch.setattr(batch, "_table", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_lists(SERVED, everyone(SERVED), ListRules(3), tmp_path / "lists.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.txt", "u1\nu2\nu1\n", ["u1", "u2"]),
        ("a.csv", "user_id,age\n007,3\n8,4\n", ["007", "8"]),
        ("a.csv", "age,user\n3,x\n", ["x"]),
        ("a.tsv", "u1\t5\nu2\t6\n", ["u1", "u2"]),
        ("a.txt", "1\n2\n", ["1", "2"]),
    ],
)
def test_ids_of_text_files(name: str, text: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert read_id_file(tmp_path / name, "user") == expected


def test_ids_of_parquet_files_keep_their_type(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2], "item": [7, 8]}), tmp_path / "a.parquet")
    assert read_id_file(tmp_path / "a.parquet", "item") == [7, 8]
    assert read_id_file(tmp_path / "a.parquet", "user") == [1, 2]


def test_files_without_ids(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user\n")
    with pytest.raises(DataError, match="should hold ids of users but has none"):
        read_id_file(tmp_path / "a.csv", "user")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match=r"The file of item ids .* cannot be read"):
        read_id_file(tmp_path / "empty.csv", "item")
    with pytest.raises(DataError, match="There is no file"):
        read_id_file(tmp_path / "none.csv", "item")
