"""towpath recommend: for one, several or all users, with files of ids, and its sentences."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import towpath as package


def test_several_users(towpath, finished: Path) -> None:
    told = towpath("recommend", finished, "--user", "u1", "--user", "u2", "-k", 3, "--json").json
    assert [one["user"] for one in told["lists"]] == ["u1", "u2"]
    alone = towpath("recommend", finished, "--user", "u1", "-k", 3, "--json").json
    assert list(told["lists"][0]) == list(alone)
    assert [item["id"] for item in told["lists"][0]["items"]] == [item["id"] for item in alone["items"]]
    assert "For user u2" in towpath("recommend", finished, "--user", "u1", "--user", "u2").out


def test_all_users_to_a_file(towpath, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "lists.parquet"
    told = towpath("recommend", finished, "--all", "-k", 10, "--out", out, "--json").json
    assert told == {"out": str(out), "users": 300, "rows": 3000, "k": 10, "fallback_users": 0}
    table = pq.read_table(out)
    assert table.column_names == ["user", "item", "rank", "score"]
    mine = [row["item"] for row in table.to_pylist() if row["user"] == "u42"]
    assert tuple(mine) == package.load(finished).recommend("u42").items


def test_users_candidates_and_exclusions_from_files(towpath, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("u1\nnobody\n")
    (tmp_path / "some.csv").write_text("item\n" + "".join(f"i{n}\n" for n in range(20)) + "film\n")
    (tmp_path / "not.csv").write_text("i3\n")
    files = ["--users", tmp_path / "users.txt", "--candidates", tmp_path / "some.csv"]
    files += ["--exclude", tmp_path / "not.csv", "--no-filter-seen", "-k", 80]
    told = towpath("recommend", finished, *files, "--json").json
    for one in told["lists"]:
        assert {item["id"] for item in one["items"]} == {f"i{n}" for n in range(20)} - {"i3"}
    answer = towpath("recommend", finished, *files, "--out", tmp_path / "l.csv")
    assert "1 of 2 users are unknown to the model (first: 'nobody')" in answer.err
    assert "1 of 21 candidates are unknown (first: 'film'): ignored" in answer.err
    assert "1 of 2 users got the fallback" in answer.err
    assert len((tmp_path / "l.csv").read_text().splitlines()) == 1 + 2 * 19


def test_a_history(towpath, finished_ease: Path) -> None:
    told = towpath("recommend", finished_ease, "--user", "new", "--history", "i1,i2,film", "--json").json
    assert (told["fallback"], told["how"]) == (False, "folded in")
    assert not {"i1", "i2"} & {item["id"] for item in told["items"]}
    answer = towpath("recommend", finished_ease, "--user", "new", "--history", "i1,film")
    assert "1 of 2 items of the history are unknown" in answer.err
    assert "For user new (folded in)" in answer.out


@pytest.fixture(scope="module")
def shown_again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log in which i0 was shown to everyone three times and never clicked."""
    rows = ["user,item,time,label"]
    for user in range(40):
        rows += [f"u{user},i0,{time},0" for time in (10, 20, 30)]
        for n, item in enumerate((user * 3 + step) % 9 + 1 for step in range(7)):
            rows.append(f"u{user},i{item},{40 + n},{int(n != 2)}")
    path = tmp_path_factory.mktemp("again") / "log.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_what_was_shown_rests(towpath, shown_again: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    keep = ["--repeats", "allow", "--set", "epochs=1", "--set", "embedding_dim=4", "--json"]
    told = towpath("fit", shown_again, "--method", "imitation", *keep, "--out", run).json
    assert set(told["dial"]) == {"shown_share", "likeness"}

    def scores(*options: object) -> dict[str, float]:
        lists = towpath("recommend", run, "--user", "u1", "-k", 10, *options, "--json").json["items"]
        return {one["id"]: one["score"] for one in lists}

    usual = scores()
    assert "i0" in usual
    assert set(scores("--max-showings", 3)) == set(usual) - {"i0"}
    assert scores("--max-showings", 4) == pytest.approx(usual, abs=1e-6)  # one of them is without torch
    assert scores("--rest")["i0"] < usual["i0"] - 0.1  # it was never clicked when it was shown again
    never = {item for item in usual if item not in scores("--filter-shown")}
    assert all(scores("--rest")[item] == pytest.approx(usual[item]) for item in set(usual) - never)
    hits = [
        towpath("evaluate", run, "--k", 3, *options, "--json").json["metrics"]["hit"]
        for options in ((), ("--max-showings", 3), ("--rest",), ("--filter-shown",))
    ]
    assert hits[1] > hits[0]  # i0 took a place in every list
    assert hits[2] >= hits[0]


def test_similar_to_several(towpath, finished_ease: Path) -> None:
    told = towpath("similar", finished_ease, "--item", "i7", "--item", "i8", "-k", 3, "--json").json
    assert [one["item"] for one in told["lists"]] == ["i7", "i8"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "recommend takes one of --user U (once or more), --users FILE and --all, and 0 of them came."),
        (["--user", "u1", "--all"], "recommend takes one of"),
        (["--all"], "--all makes very many lists; say where to write them with --out lists.parquet."),
        (["--all", "--out", "lists.xlsx"], "--out takes a file that ends in .parquet or .csv"),
        (["--user", "a", "--user", "b", "--history", "i1"], "--history is that of one user"),
        (["--user", "a", "--history", "film"], "None of the 1 items of the history is among the 80 items"),
        (["--user", "u1", "-k", "0"], "k must lie between 1 and the 80 items of the catalogue, and 0 was"),
        (["--all", "--out", "l.csv", "-k", "81"], "k must lie between 1 and the 80 items"),
        (["--users", "nothing.txt"], "There is no file nothing.txt with ids of users"),
        (["--user", "u1", "--candidates", "film.txt"], "None of the 1 items of the candidates is among"),
    ],
)
def test_sentences(
    arguments: list[str], sentence: str, towpath, finished: Path, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "film.txt").write_text("unheard-of\n")
    assert towpath("recommend", finished, *arguments).sentence().startswith(sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["film.txt"]
