"""Side features from the command line, from the files to a model that serves without them."""

from pathlib import Path

import pytest

TINY = ["--model", "wide_deep", "--set", "epochs=1", "--set", "embedding_dim=4", "--set", "hidden=[8,4]"]


@pytest.fixture
def features(tmp_path: Path) -> list[object]:
    """Options for features of the users u0 to u299 (one of them twice missing) and of ten of the items."""
    users = [f"u{n},{'even' if n % 2 == 0 else 'odd'},{n / 8}" for n in range(1, 300)] + ["stranger,odd,1"]
    items = [f"i{n},a;b" for n in range(10)]
    (tmp_path / "users.csv").write_text("\n".join(["user,group,age", *users]) + "\n")
    (tmp_path / "items.csv").write_text("\n".join(["item,tags", *items]) + "\n")
    named = ["--user-features", tmp_path / "users.csv", "--item-features", tmp_path / "items.csv"]
    return [*named, "--feature", "tags=multivalued:;"]


def test_a_fit_says_what_became_of_features_and_serves_without_them(
    towpath, events: Path, features: list[object], tmp_path: Path
) -> None:
    fitted = towpath("fit", events, *TINY, *features, "--out", tmp_path / "run")
    again = towpath("fit", events, *TINY, *features, "--out", tmp_path / "run", "--resume", "--json").json
    assert again["features"]["users"]["labels"] == ["group"]
    assert again["features"]["items"]["codes"] == [4]
    assert "group categorical (2 values), age numeric" in fitted.err
    assert "1 of 300 rows are of users without events: ignored" in fitted.err
    assert "1 of 300 users have no row: all values missing" in fitted.err
    assert "70 of 80 items have no row: all values missing" in fitted.err
    for file in tmp_path.glob("*.csv"):
        file.unlink()
    assert len(towpath("recommend", tmp_path / "run", "--user", "u7", "--json").json["items"]) == 10
    assert len(towpath("similar", tmp_path / "run", "--item", "i3", "--json").json["items"]) == 10
    assert towpath("evaluate", tmp_path / "run", "--json").json["users"] == 300


def test_resuming_with_other_features_is_refused(
    towpath, events: Path, features: list[object], tmp_path: Path
) -> None:
    towpath("fit", events, *TINY, *features, "--out", tmp_path / "run")
    without = towpath("fit", events, *TINY, "--out", tmp_path / "run", "--resume")
    assert "was started with data." in without.sentence()


def test_inspect_and_compare_take_features(towpath, events: Path, features: list[object]) -> None:
    found = towpath("data", "inspect", events, *features, "--json").json["features"]
    assert [report["side"] for report in found] == ["user", "item"]
    assert found[1]["missing"] == {"tags": 70}
    compared = towpath("compare", events, *TINY, *features, "--seeds", "1", "--json")
    assert {row["model"] for row in compared.json["rows"]} == {"wide_deep"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--feature", "group"], "--feature takes NAME=KIND"),
        (["--feature", "grup=categorical"], "no feature 'grup'; did you mean 'group'"),
        (["--feature", "group=colour"], "no kind of feature"),
        (["--feature", "group=numeric"], "The numeric feature 'group' should hold numbers"),
        (["--item-features", "nowhere.csv"], "There is no file nowhere.csv"),
        (["--set", "crosses=group*colour"], "no feature to cross 'colour'"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_left(
    towpath,
    events: Path,
    features: list[object],
    tmp_path: Path,
    options: list[str],
    words: str,
) -> None:
    answer = towpath("fit", events, *TINY, *features, *options, "--out", tmp_path / "run")
    assert words in answer.sentence()
    assert not (tmp_path / "run" / "artifact").exists()
