"""What a row counts as: labels, rules on values, kinds of events, and what is refused."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from towpath.data.cleaning import Cleaning
from towpath.data.columns import Columns
from towpath.data.meaning import Positive
from towpath.data.sources import Reading, read
from towpath.errors import ConfigError, DataError

LOG = {
    "user": ["a", "a", "a", "b", "b"],
    "item": [1, 2, 3, 1, 2],
    "time": [1, 2, 3, 1, 2],
    "clicked": [0, 1, 0, 1, 0],
}


def read_frame(log: dict[str, list], /, **how: object) -> Reading:
    return read(pa.table(log), **how)  # type: ignore[arg-type]


def pairs(reading: Reading) -> list[tuple[str, int]]:
    rows = reading.interactions
    return list(zip(rows.user_ids.ids(rows.users), rows.item_ids.ids(rows.items), strict=True))


def test_what_was_shown_but_not_clicked_is_no_positive() -> None:
    reading = read_frame(LOG)
    assert pairs(reading) == [("a", 2), ("b", 1)]
    assert reading.interactions.rows.labels.tolist() == [False, True, False, True, False]
    assert "5 rows: 2 clicked, 3 shown but not clicked" in reading.notes
    assert dict(reading.roles) == {"user": "user", "item": "item", "time": "time", "label": "clicked"}


def test_a_log_without_labels_is_a_log_of_positives() -> None:
    reading = read_frame({name: LOG[name] for name in ("user", "item", "time")})
    assert len(reading.interactions) == 5
    assert reading.interactions.impressions is None


def test_ratings_count_by_a_rule_or_all_and_a_line_says_so() -> None:
    rated = {**LOG, "rating": [5, 4, 3, 2, 4.5]}
    del rated["clicked"]
    everything = read_frame(rated)
    assert len(everything.interactions) == 5
    assert any("all rated rows count as positives" in note for note in everything.notes)
    chosen = read_frame(rated, positive=Positive(">=4"))
    assert pairs(chosen) == [("a", 1), ("a", 2), ("b", 2)]
    assert "5 rows: 3 positive, 2 rated but not positive" in chosen.notes


def test_kinds_of_events_and_their_weights() -> None:
    shop = {**LOG, "event": ["view", "cart", "view", "purchase", "view"]}
    del shop["clicked"]
    positive = Positive(events=("cart", "purchase"), event_weights={"purchase": 3.0})
    reading = read_frame(shop, positive=positive)
    assert pairs(reading) == [("a", 2), ("b", 1)]
    assert reading.interactions.values.tolist() == [1.0, 3.0]
    with pytest.raises(DataError, match="no event 'buy' in column 'event'; events there: 'view', 'cart'"):
        read_frame(shop, positive=Positive(events=("buy",)))


def test_events_that_only_show_are_known_by_their_names() -> None:
    log = {**LOG, "event_type": ["impression", "click", "impression", "click", "impression"]}
    del log["clicked"]
    reading = read_frame(log)
    assert pairs(reading) == [("a", 2), ("b", 1)]
    assert any("'impression' count as shown" in note for note in reading.notes)


def test_clicks_are_never_lost_to_showings_of_the_same_pair() -> None:
    log = {
        "user": ["a", "a", "a", "b", "b", "b"],
        "item": [1, 1, 1, 2, 2, 1],
        "time": [1, 2, 3, 1, 2, 3],
        "click": [0, 1, 1, 0, 0, 1],
    }
    first, last, every = (read_frame(log, cleaning=Cleaning(repeats=r)) for r in ("first", "last", "allow"))
    assert pairs(first) == pairs(last) == [("a", 1), ("b", 1)]
    assert first.interactions.times.tolist() == [2, 3]
    assert last.interactions.times.tolist() == [3, 3]
    assert len(first.interactions.rows) == 3
    assert len(every.interactions) == 3
    assert len(every.interactions.rows) == 6


def test_minima_count_positives() -> None:
    reading = read_frame({**LOG, "clicked": [0, 1, 1, 1, 0]}, cleaning=Cleaning(min_per_user=1))
    assert reading.interactions.n_users == 2
    with pytest.raises(DataError, match="one user only"):
        read_frame({**LOG, "clicked": [0, 1, 1, 1, 0]}, cleaning=Cleaning(min_per_user=2))


def test_further_roles_are_kept() -> None:
    log = {**LOG, "position": [1, 2, 1, 1, 2], "request_id": ["x", "x", "y", "z", "z"],
           "propensity": [0.5, 0.5, 0.1, 1.0, 0.2], "arm": ["new", "new", "old", "old", "old"]}  # fmt: skip
    rows = read_frame(log).interactions.rows
    assert rows.positions.tolist() == [1, 2, 1, 1, 2]
    assert rows.requests.tolist() == [0, 0, 1, 2, 2]
    assert rows.policies.tolist() == [0, 0, 1, 1, 1]
    assert np.allclose(rows.propensities, [0.5, 0.5, 0.1, 1.0, 0.2])


def test_a_guess_can_be_switched_off() -> None:
    assert len(read_frame(LOG, columns=Columns(label="")).interactions) == 5


def test_a_full_time_beats_a_day_and_whole_numbers_can_be_days() -> None:
    day = [20220425, 20220426, 20220427, 20220425, 20220426]
    both = read_frame({"user": LOG["user"], "item": LOG["item"], "date": day, "time_ms": [5, 4, 3, 2, 1]})
    assert both.roles["time"] == "time_ms"
    days = read_frame({"user": LOG["user"], "item": LOG["item"], "date": day})
    assert days.interactions.times[:2].tolist() == [1650844800000000, 1650931200000000]


@pytest.mark.parametrize("other", [20221301, 20220400, 18991231, 21000101, -20220425, 202204251])
def test_whole_numbers_are_no_days_if_one_of_them_is_none(other: int) -> None:
    times = [20220425, other, 20220427, 20220425, 20220426]
    log = read_frame({"user": LOG["user"], "item": LOG["item"], "date": times})
    assert sorted(log.interactions.rows.times.tolist()) == sorted(times)


@pytest.mark.parametrize(
    ("columns", "how", "sentence"),
    [
        (
            {"clicked": ["yes", "no", "no", "no", "no"]},
            {"label": "clicked"},
            "should be 0 or 1; 5 of 5 do not",
        ),
        ({"clicked": [0, 0, 0, 0, 0]}, {"label": "clicked"}, "true of none of 5"),
        ({"clicked": [1, 1, 1, 1, 1]}, {"label": "clicked"}, "it is 1 in all 5 rows"),
        ({"shown": [1, 0, 1, 1, 1]}, {}, "was not shown cannot have been clicked"),
        ({"propensity": [0.5, 0.0, 0.5, 0.5, 0.5]}, {}, "above 0 and at most 1; 1 of 5"),
    ],
)
def test_bad_labels_are_one_sentence(columns: dict, how: dict, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_frame({**LOG, **columns}, columns=Columns(**how))


def test_a_guessed_label_that_is_none_is_left_alone() -> None:
    reading = read_frame({**LOG, "clicked": ["home", "search", "home", "home", "search"]})
    assert len(reading.interactions) == 5
    assert any("is no label" in note for note in reading.notes)


def test_only_one_thing_says_what_a_positive_is() -> None:
    with pytest.raises(ConfigError, match="Only one of --label-col and --positive"):
        read_frame(
            {**LOG, "rating": [1, 2, 3, 4, 5]}, columns=Columns(label="clicked"), positive=Positive(">3")
        )
    with pytest.raises(ConfigError, match="takes a comparison with a number"):
        Positive("four")


def test_missing_ids_are_refused_or_dropped_with_a_count() -> None:
    log = {**LOG, "item": [1, None, 3, 1, 2]}
    with pytest.raises(DataError, match=r"1 of 5 does not .*--missing drop"):
        read_frame(log)
    reading = read_frame(log, cleaning=Cleaning(missing="drop"))
    assert [(step.name, step.dropped_rows) for step in reading.steps[:2]] == [("read", 0), ("missing ids", 1)]
    assert pairs(reading) == [("b", 1)]


def test_data_frames_of_every_kind_give_the_same_events(tmp_path: Path) -> None:
    log = pa.table(LOG)
    frames = [log, duckdb.sql("SELECT * FROM log")]
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    frames += [pandas.DataFrame(LOG), polars.DataFrame(LOG)]
    assert all(pairs(read(frame)) == [("a", 2), ("b", 1)] for frame in frames)


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_a_data_frame_with_two_columns_of_one_name_is_one_sentence(library: str) -> None:
    table = pa.table([pa.array([1, 2]), pa.array([3, 4]), pa.array([5, 6])], names=["user", "item", "item"])
    frame = (
        table
        if library == "pyarrow"
        else pytest.importorskip("pandas").DataFrame([[1, 3, 5], [2, 4, 6]], columns=table.column_names)
    )
    with pytest.raises(DataError, match="'item' is the name of several"):
        read(frame)
