"""evaluate, recommend, similar, compare and data: the contract for machines, and what people see."""

import json
from pathlib import Path

import pytest

import towpath as package
from event_files import write_events

QUICK = ["--set", "mf.epochs=2", "--set", "mf.embedding_dim=4", "--set", "mf.batch_size=512"]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on enough items for 100 negatives."""
    folder = tmp_path_factory.mktemp("wide")
    data = write_events(folder / "events.csv", users=50, items=150)
    fitted = package.split(package.read(data))
    package.save(package.fit(fitted, "popularity"), fitted, folder / "artifact")
    from towpath.cli import main

    assert main(["fit", str(data), "--model", "popularity", "--out", str(folder / "run"), "--quiet"]) == 0
    return folder / "run"


@pytest.mark.parametrize("protocol", ["full", "sampled", "paper"])
@pytest.mark.parametrize("on", ["test", "validation"])
def test_evaluate(protocol: str, on: str, towpath, wide: Path) -> None:
    told = towpath("evaluate", wide, "--protocol", protocol, "--on", on, "-k", 5, "--json").json
    assert list(told) == ["protocol", "on", "k", "users", "metrics", "intervals"]
    assert (told["protocol"], told["on"], told["k"], told["users"]) == (protocol, on, 5, 50)
    assert {"hit", "ndcg", "recall", "mrr", "rel"} <= set(told["metrics"])
    assert 0 <= told["metrics"]["ndcg"] <= told["metrics"]["hit"] <= 1


def test_evaluate_says_what_python_says(towpath, wide: Path) -> None:
    told = towpath("evaluate", wide, "--json").json
    split = package.split(package.read(wide.parent / "events.csv"))
    assert told["metrics"] == package.evaluate(package.fit(split, "popularity"), split).metrics()


def test_evaluate_for_people_names_the_protocol(towpath, wide: Path) -> None:
    answer = towpath("evaluate", wide, "--protocol", "sampled")
    assert answer.out.startswith(f"{wide}: sampled, test, k = 10, 50 users\n")
    assert "ndcg" in answer.out


def test_recommend(towpath, finished: Path) -> None:
    told = towpath("recommend", finished, "--user", "u42", "-k", 5, "--json").json
    assert list(told) == ["user", "items", "fallback", "how"]
    assert (told["user"], told["fallback"]) == ("u42", False)
    assert len(told["items"]) == 5
    assert all(list(item) == ["id", "score"] for item in told["items"])
    served = package.load(finished).recommend("u42", k=5)
    assert tuple(item["id"] for item in told["items"]) == served.items
    # The command multiplies by numpy, the recommender by torch: the last bit may differ.
    assert [item["score"] for item in told["items"]] == pytest.approx(served.scores, rel=1e-6)


def test_recommend_hides_what_the_user_had(towpath, events: Path, finished: Path) -> None:
    had = {line.split(",")[1] for line in events.read_text().splitlines() if line.startswith("u42,")}
    told = towpath("recommend", finished, "--user", "u42", "-k", 80, "--json").json
    assert {item["id"] for item in told["items"]} == {f"i{n}" for n in range(80)} - had


def test_an_unknown_user_gets_the_fallback_and_is_told(towpath, finished: Path) -> None:
    told = towpath("recommend", finished, "--user", "nobody", "--json").json
    assert (told["user"], told["fallback"], len(told["items"])) == ("nobody", True, 10)
    answer = towpath("recommend", finished, "--user", "nobody")
    assert "this is the fallback, popularity" in answer.err
    assert "(fallback: popularity)" in answer.out


def test_number_ids_are_found_as_text_and_come_back_as_numbers(towpath, events: Path, tmp_path: Path) -> None:
    numbered = tmp_path / "numbered.csv"
    header, *rows = events.read_text().splitlines()
    numbered.write_text("\n".join([header, *(row.replace("u", "").replace("i", "") for row in rows)]) + "\n")
    assert towpath("fit", numbered, "--model", "popularity", "--out", tmp_path / "run").code == 0
    told = towpath("recommend", tmp_path / "run", "--user", "42", "--json").json
    assert (told["user"], told["fallback"]) == ("42", False)
    assert all(isinstance(item["id"], int) for item in told["items"])


def test_an_artifact_serves_without_its_run_and_data(towpath, finished: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(finished / "artifact", tmp_path / "elsewhere")
    one = towpath("recommend", finished, "--user", "u1", "--json").out
    assert towpath("recommend", tmp_path / "elsewhere", "--user", "u1", "--json").out == one


def test_similar(towpath, finished_ease: Path) -> None:
    told = towpath("similar", finished_ease, "--item", "i7", "-k", 3, "--json").json
    assert list(told) == ["item", "items"]
    assert told["item"] == "i7"
    assert len(told["items"]) == 3
    assert "i7" not in [item["id"] for item in told["items"]]
    assert "Like item i7" in towpath("similar", finished_ease, "--item", "i7").out


def test_compare_models(towpath, events: Path) -> None:
    told = towpath("compare", events, "--models", "mf,ease", "--seeds", 2, *QUICK, "--json").json
    assert {(row["model"], row["method"]) for row in told["rows"]} == {("mf", "plain"), ("ease", "plain")}
    assert {"model", "method", "protocol", "metric", "mean", "sd"} <= set(told["rows"][0])
    gap = next(gap for gap in told["differences"] if gap["metric"] == "hit")
    assert (gap["a"], gap["b"], gap["protocol"]) == ("ease", "mf", "full")
    assert gap["low"] <= gap["mean"] <= gap["high"]
    means = {row["model"]: row["mean"] for row in told["rows"] if row["metric"] == "hit"}
    assert gap["mean"] == pytest.approx(means["ease"] - means["mf"])


def test_compare_says_what_the_log_has_seen_of_the_difference(towpath, events: Path, tmp_path: Path) -> None:
    asked = ["compare", events, "--models", "popularity,ease", "--seeds", "1", "--out", tmp_path / "out"]
    told = towpath(*asked, "--json").json
    for label in ("popularity", "ease"):
        found = told["evidence"]["models"][label]
        assert sum(v for level, v in found.items() if level != "expected_clicks") == pytest.approx(1)
    (difference,) = told["evidence"]["differences"]
    assert (difference["a"], difference["b"]) == ("ease", "popularity")
    assert told["warnings"] == [difference["warning"]]
    assert "slots in which ease and popularity differ" in told["warnings"][0]
    people = towpath(*asked)  # from what is stored
    assert "What the log has seen" in people.out
    assert told["warnings"][0] in " ".join(people.err.split())
    assert towpath(*asked, "--json").json == told


def test_compare_takes_given_seeds_protocols_and_settings_for_one_model(towpath, tmp_path: Path) -> None:
    data = write_events(tmp_path / "events.csv", users=50, items=150)
    compared = ["compare", data, "--models", "popularity,mf", "--protocol", "full,sampled", *QUICK]
    told = towpath(*compared, "--seeds", "7,9", "-k", 5, "--json").json
    assert (told["k"], told["seeds"]) == (5, 2)
    assert {row["protocol"] for row in told["rows"]} == {"full", "sampled"}
    answer = towpath(*compared, "--seeds", "1")
    assert answer.code == 0
    assert "Differences a - b; low and high: 95 %" in answer.out


def test_data_list(towpath) -> None:
    names = [one["name"] for one in towpath("data", "list", "--json").json["sets"]]
    assert names == ["ml-100k", "ml-1m", "lastfm-2k", "goodreads-history-biography"]
    assert "goodreads-history-biography" in towpath("data", "list").out


def test_data_inspect(towpath, events: Path) -> None:
    assert json.dumps(towpath("data", "inspect", events, "--json").json)
    answer = towpath("data", "inspect", events)
    assert answer.code == 0
    assert "300" in answer.out


def test_the_data_directory_comes_from_the_environment(towpath, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TOWPATH_DATA", str(tmp_path))
    sentence = towpath("data", "inspect", "ml-1m").sentence()
    assert f"ml-1m is not in {tmp_path}" in sentence


def test_columns_cleaning_and_split_are_passed_on(towpath, events: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(events.read_text().replace("user,item,rating,time", "who,what,much,when"))
    columns = ["--user-col", "who", "--item-col", "what", "--value-col", "much", "--time-col", "when"]
    cleaning = ["--min-rating", 2, "--min-per-user", 3, "--filter", "k-core"]
    split = ["--split", "random", "--test-share", 0.2, "--split-seed", 5]
    out = tmp_path / "run"
    answer = towpath("fit", renamed, "--model", "popularity", *columns, *cleaning, *split, "--out", out)
    assert answer.code == 0
    assert "min_rating 2: dropped 720, left 2,880 rows" in answer.err
    record = json.loads((out / "run.json").read_text())["data"]
    assert (record["split"], record["test_share"], record["split_seed"]) == ("random", 0.2, 5)
    assert record["min_rating"] == 2
    for how in ("time", "leave-last-two"):
        fitted = towpath("fit", events, "--model", "popularity", "--split", how, "--out", tmp_path / how)
        assert fitted.code == 0
