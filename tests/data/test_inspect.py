from pathlib import Path

import pytest

from towpath.data.cleaning import Cleaning
from towpath.data.inspect import inspect
from towpath.data.sources import read

ROWS = ["1,a,5,100", "1,b,5,200", "1,c,3,200", "2,a,,-50", "2,a,3,300"]


def write(folder: Path) -> Path:
    (folder / "e.csv").write_text("user,item,rating,time\n" + "\n".join(ROWS) + "\n")
    return folder / "e.csv"


def test_counts_are_those_of_a_file_small_enough_to_count(tmp_path: Path) -> None:
    found = inspect(read(write(tmp_path), cleaning=Cleaning(repeats="allow")))
    assert (found.rows, found.users, found.items, found.repeated_pairs) == (5, 2, 3, 1)
    assert found.density == pytest.approx(4 / 6)
    assert found.events_per_user == {"least": 2, "25 %": 2.25, "median": 2.5, "75 %": 2.75, "most": 3}
    assert found.users_under_three == 1
    assert (found.first_time, found.last_time) == ("1969-12-31 23:59:10+00:00", "1970-01-01 00:05:00+00:00")
    assert found.tied_at_the_end == 0.5
    assert found.values == {"3": 0.5, "5": 0.5}
    assert found.missing_values == 1


def test_warnings_say_what_may_go_wrong(tmp_path: Path) -> None:
    allowed = " ".join(inspect(read(write(tmp_path), cleaning=Cleaning(repeats="allow"))).warnings)
    assert "50% of users tie" in allowed
    assert "Repeated pairs are allowed" in allowed
    assert "1 events have a time before 1970" in allowed
    assert "1 users have fewer than three positives" in allowed
    assert "1 events repeated a pair" in " ".join(inspect(read(write(tmp_path))).warnings)


def test_missing_times_are_counted(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("user,item,time\n1,a,\n2,b,5\n")
    found = inspect(read(tmp_path / "e.csv"))
    assert found.missing_times == 1
    assert any("1 events have no time" in warning for warning in found.warnings)
    (tmp_path / "e.csv").write_text("user,item\n1,a\n2,b\n")
    none = inspect(read(tmp_path / "e.csv"))
    assert none.missing_times == 2
    assert none.first_time is None
    assert none.values is None


def test_many_values_become_quantiles(tmp_path: Path) -> None:
    rows = "".join(f"{n % 5},{n},{n}\n" for n in range(101))
    (tmp_path / "e.csv").write_text("user,item,weight\n" + rows)
    values = inspect(read(tmp_path / "e.csv")).values
    assert values == {"least": 0, "25 %": 25, "median": 50, "75 %": 75, "most": 100}
