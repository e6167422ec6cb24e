import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.data.cleaning import Cleaning
from towpath.data.columns import Columns
from towpath.data.fetch import fetch
from towpath.data.inspect import inspect
from towpath.data.sources import Reading, read
from towpath.data.split import split_leave_last_two
from towpath.errors import ConfigError, DataError

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="needs the real sets in ../shared/data")


@pytest.fixture(scope="module")
def ml_1m() -> Reading:
    return read("ml-1m", data_dir=SHARED)


@needs_shared
def test_movielens_1m_has_its_published_counts_and_known_ties(ml_1m: Reading) -> None:
    data = ml_1m.interactions
    assert (len(data), data.n_users, data.n_items) == (1_000_209, 6_040, 3_706)
    assert data.user_ids.ids(np.array([0, 6039])) == [1, 6040]
    found = inspect(ml_1m)
    assert found.tied_at_the_end == pytest.approx(0.42, abs=0.005)
    assert (found.first_time, found.last_time) == ("2000-04-25 23:05:32+00:00", "2003-02-28 17:49:50+00:00")
    split = split_leave_last_two(data)
    assert (len(split.train), len(split.validation), len(split.test)) == (988_129, 6_040, 6_040)


@needs_shared
def test_movielens_1m_splits_ties_by_the_row_of_the_file(ml_1m: Reading) -> None:
    with zipfile.ZipFile(SHARED / "ml-1m.zip") as archive:
        text = archive.read("ml-1m/ratings.dat").decode("latin-1")
    rows = np.fromstring(text.replace("::", " "), dtype=np.int64, sep=" ").reshape(-1, 4)
    last = rows[np.lexsort((np.arange(len(rows)), rows[:, 3], rows[:, 0]))]
    last = last[np.append(np.diff(last[:, 0]) != 0, True)]
    test = split_leave_last_two(ml_1m.interactions).test
    assert test.item_ids.ids(test.items) == last[:, 1].tolist()


@needs_shared
def test_movielens_100k_is_found_unpacked() -> None:
    data = read("ml-100k", data_dir=SHARED).interactions
    assert (len(data), data.n_users, data.n_items) == (100_000, 943, 1_682)


@needs_shared
def test_lastfm_repeats_are_dropped_unless_allowed() -> None:
    reading = read("lastfm-2k", data_dir=SHARED)
    assert [step.rows for step in reading.steps] == [186_479, 71_064]
    data = reading.interactions
    assert (data.n_users, data.n_items) == (1_892, 12_523)
    allowed = read("lastfm-2k", data_dir=SHARED, cleaning=Cleaning(repeats="allow"))
    assert inspect(allowed).repeated_pairs == 186_479 - 71_064


@needs_shared
def test_a_file_without_times_or_header_is_read_in_its_order() -> None:
    reading = read(SHARED / "goodreads-small" / "ratings.txt")
    assert reading.interactions.times is None
    assert [step.rows for step in reading.steps] == [137_045, 137_045 - 159]
    assert "order of the file" in split_leave_last_two(reading.interactions).description


def write_goodreads(folder: Path) -> None:
    rows = [
        {
            "user_id": "8842281e",
            "book_id": "24375664",
            "rating": 5,
            "date_updated": "Tue Oct 17 09:40:11 -0700 2017",
        },
        {
            "user_id": "8842281e",
            "book_id": "18245960",
            "rating": 0,
            "date_updated": "Tue Oct 17 09:40:10 -0700 2017",
        },
        {
            "user_id": "01ab",
            "book_id": "24375664",
            "rating": 3,
            "date_updated": "Mon Jan 01 00:00:00 +0000 2018",
        },
    ]
    text = "".join(json.dumps({**row, "review_text": "fine\u2028\nindeed"}) + "\n" for row in rows)
    (folder / "goodreads_reviews_history_biography.json.gz").write_bytes(gzip.compress(text.encode()))


def test_a_copy_that_changed_since_it_was_fetched_is_refused(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    write_goodreads(tmp_path / "first")
    name = "goodreads-history-biography"
    copy = fetch(name, tmp_path / "data", source=next((tmp_path / "first").iterdir()))
    assert len(read(name, data_dir=tmp_path / "data").interactions) == 3
    lines = gzip.decompress(copy.read_bytes()).splitlines(keepends=True)
    copy.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(DataError, match=r"kept when it was fetched, but has another one; fetch goodreads"):
        read(name, data_dir=tmp_path / "data")


def test_packed_parquet_files_of_one_name_in_two_folders_are_both_read(tmp_path: Path) -> None:
    for folder, users in (("a", [1, 2]), ("b", [3, 4])):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"user": users, "item": [1, 2]}), tmp_path / folder / "plain")
        packed = gzip.compress((tmp_path / folder / "plain").read_bytes())
        (tmp_path / folder / "e.parquet.gz").write_bytes(packed)
        (tmp_path / folder / "plain").unlink()
    assert read(tmp_path).interactions.user_ids.values.to_pylist() == [1, 2, 3, 4]


def test_goodreads_keeps_rows_whose_rating_was_not_given(tmp_path: Path) -> None:
    write_goodreads(tmp_path)
    data = read("goodreads-history-biography", data_dir=tmp_path).interactions
    assert data.user_ids.values.to_pylist() == ["01ab", "8842281e"]
    assert data.item_ids.ids(data.items) == ["24375664", "18245960", "24375664"]
    assert data.values is not None
    assert data.times is not None
    assert np.array_equal(data.values, np.array([3, np.nan, 5], np.float32), equal_nan=True)
    assert data.times[2] == 1508258411000000


def test_a_built_in_dataset_is_read_from_its_archive_and_nothing_is_unpacked_next_to_it(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(tmp_path / "ml-100k.zip", "w") as archive:
        archive.writestr("ml-100k/u.data", "1\t10\t3\t881250949\n2\t20\t4\t881250950\n")
    tmp_path.chmod(0o500)
    try:
        reading = read("ml-100k", data_dir=tmp_path)
    finally:
        tmp_path.chmod(0o700)
    assert len(reading.interactions) == 2
    assert reading.source == f"ml-100k ({tmp_path / 'ml-100k.zip'})"
    assert [path.name for path in tmp_path.iterdir()] == ["ml-100k.zip"]


def test_a_damaged_or_other_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ml-1m.zip").write_bytes(b"PK\3\4 cut short")
    with pytest.raises(DataError, match=r"ml-1m\.zip cannot be read.*; fetch it again\."):
        read("ml-1m", data_dir=tmp_path)
    with zipfile.ZipFile(tmp_path / "ml-1m.zip", "w") as archive:
        archive.writestr("ml-1m/README", "no ratings")
    with pytest.raises(DataError, match=r"should contain ml-1m/ratings\.dat"):
        read("ml-1m", data_dir=tmp_path)


def test_a_set_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    for folder in (tmp_path, None):
        with pytest.raises(DataError, match="towpath data fetch ml-1m"):
            read("ml-1m", data_dir=folder)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("name", ["a[1]", "a*", "a?", "file:a", "~a", "a'b", "a{1,2}"])
def test_the_name_of_a_file_is_no_pattern(
    name: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Next to `a[1].csv` there may be an `a1.csv`, which is another file."""
    monkeypatch.chdir(tmp_path)
    for file, users in ((f"{name}.{ending}", 3), (f"a1.{ending}", 2), (f"ab.{ending}", 2)):
        pairs = [(user, item) for user in range(users) for item in range(4)]
        if ending == "parquet":
            table = pa.table({"user": [u for u, _ in pairs], "item": [i for _, i in pairs]})
            pq.write_table(table, tmp_path / file)
        elif ending == "csv":
            (tmp_path / file).write_text("user,item\n" + "".join(f"{u},{i}\n" for u, i in pairs))
        else:
            lines = [json.dumps({"user": u, "item": i}) for u, i in pairs]
            (tmp_path / file).write_text("\n".join(lines) + "\n")
    assert len(read(tmp_path / f"{name}.{ending}").interactions) == 12


def test_what_is_neither_a_set_nor_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'ml-1m'"):
        read("ml-1n")
    with pytest.raises(DataError, match="There is no file"):
        read(tmp_path / "absent.csv")
    with pytest.raises(DataError, match="There is no file"):
        read(f"{tmp_path}/*.csv")
    with pytest.raises(DataError, match="holds no file with a known ending"):
        read(tmp_path)


def test_files_of_several_layouts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item\n1,2\n")
    (tmp_path / "b.csv").write_text("user,thing\n1,2\n")
    with pytest.raises(DataError, match="same columns"):
        read(tmp_path)
    (tmp_path / "b.csv").unlink()
    (tmp_path / "c.jsonl").write_text('{"user": 1, "item": 2}\n')
    with pytest.raises(DataError, match="one format"):
        read(tmp_path)


def test_columns_of_a_built_in_dataset_can_be_overridden(tmp_path: Path) -> None:
    write_goodreads(tmp_path)
    data = read(
        "goodreads-history-biography", data_dir=tmp_path, columns=Columns(value="rating")
    ).interactions
    assert data.values is not None
    with pytest.raises(DataError, match="no column 'stars'"):
        read("goodreads-history-biography", data_dir=tmp_path, columns=Columns(value="stars"))


def test_nothing_temporary_is_left_after_success_or_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (tmp_path / "e.csv").write_text("user,item\n1,2\n3,4\n")
    read(tmp_path / "e.csv")
    (tmp_path / "e.csv").write_text("user,item\n1,2\n3\n")
    with pytest.raises(DataError):
        read(tmp_path / "e.csv")
    assert list(temporary.iterdir()) == []
