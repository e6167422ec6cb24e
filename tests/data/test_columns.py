import pytest

from towpath.data.columns import Columns, looks_like_header, map_columns, map_positions
from towpath.errors import DataError


@pytest.mark.parametrize("user", ["user", "user_id", "userId", "userID", "uid", "USER-ID", "reviewerID"])
@pytest.mark.parametrize("item", ["item", "item_id", "movieId", "book_id", "artistID", "asin"])
def test_usual_names_are_guessed_and_said(user: str, item: str) -> None:
    mapping = map_columns(Columns(), ["x", item, user], "e.csv")
    assert mapping.indices == {"user": 2, "item": 1}
    assert mapping.notes == (f"user column: {user!r} (guessed)", f"item column: {item!r} (guessed)")


def test_the_likelier_name_wins_and_the_other_is_said() -> None:
    mapping = map_columns(Columns(), ["date_added", "user", "item", "timestamp"], "e.csv")
    assert mapping.indices["time"] == 3
    assert mapping.notes[2] == "time column: 'timestamp' (guessed; also possible: 'date_added')"


def test_a_column_that_was_told_is_not_guessed_for_another_part() -> None:
    mapping = map_columns(Columns(user="item", item="user"), ["user", "item"], "e.csv")
    assert mapping.indices == {"user": 1, "item": 0}
    assert mapping.notes == ()


def test_a_name_wins_over_a_position() -> None:
    assert map_columns(Columns(user="2", item="3"), ["2", "x", "y"], "e.csv").indices == {
        "user": 0,
        "item": 2,
    }


def test_two_parts_cannot_share_a_column() -> None:
    with pytest.raises(DataError, match="its own column"):
        map_columns(Columns(user="a", item="1"), ["a", "b"], "e.csv")


def test_a_misnamed_column_gets_the_nearest_one_suggested() -> None:
    expected = r"no column 'usr' for the user in e\.csv; did you mean 'User'\? Columns there: User, item\."
    with pytest.raises(DataError, match=expected):
        map_columns(Columns(user="usr"), ["User", "item"], "e.csv")


def test_a_position_beyond_the_last_column_is_refused() -> None:
    with pytest.raises(DataError, match="no column '3'"):
        map_columns(Columns(user="3"), ["user", "item"], "e.csv")


def test_positions_are_user_item_rating_time() -> None:
    assert map_positions(Columns(), ["1", "2", "5", "881250949"], "u").indices == {
        "user": 0,
        "item": 1,
        "value": 2,
        "time": 3,
    }
    assert map_positions(Columns(), ["1", "2", "881250949"], "u").indices == {"user": 0, "item": 1, "time": 2}
    assert map_positions(Columns(time="3"), ["1", "2", "5"], "u").indices == {"user": 0, "item": 1, "time": 2}


def test_a_header_is_a_line_with_something_that_is_no_number() -> None:
    assert looks_like_header(["user", "1"])
    assert not looks_like_header(["1", "2.5", "-3"])
