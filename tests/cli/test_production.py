"""towpath refit and update on the command line."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="module")
def final(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from towpath.cli import main

    folder = tmp_path_factory.mktemp("final") / "final"
    assert main(["refit", str(finished), "--out", str(folder), "--quiet"]) == 0
    return folder


def test_refit(towpath, finished: Path, tmp_path: Path) -> None:
    told = towpath("refit", finished, "--out", tmp_path / "final", "--json").json
    chosen = json.loads((finished / "artifact" / "manifest.json").read_text())["best_epoch"]
    assert (told["epochs"], told["rows"], told["made_from"]) == (chosen, 3600, str(finished))
    again = towpath("refit", finished, "--out", tmp_path / "final")
    assert again.sentence().startswith(f"{tmp_path / 'final'} already exists")
    assert towpath("refit", finished, "--out", tmp_path / "final", "--resume").code == 0


def test_evaluating_a_refitted_run_explains_itself(
    towpath, final: Path, finished: Path, events: Path
) -> None:
    sentence = towpath("evaluate", final).sentence()
    assert sentence == (
        f"{final} was trained on all of its events, so nothing is left to test it on; evaluate {finished}, "
        "which it was made from, or give new events with --test."
    )
    assert towpath("evaluate", final, "--test", events, "--json").json["users"] == 300


def test_recommending_from_a_refitted_run(towpath, final: Path, tmp_path: Path) -> None:
    assert (
        towpath("recommend", final, "--all", "--out", tmp_path / "l.parquet", "--json").json["users"] == 300
    )
    assert pq.read_table(tmp_path / "l.parquet").num_rows == 3000


def test_update(towpath, final: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("user,item,rating,time\nann,i1,5,2000\nann,i2,5,2001\nu1,fresh,4,2002\n")
    told = towpath("update", final, new, "--out", tmp_path / "next", "--epochs", 2, "--json").json
    assert (told["users"], told["items"], told["rows"]) == (301, 81, 3603)
    assert (told["new_rows"], told["new_users"], told["new_items"], told["epochs"]) == (3, 1, 1, 2)
    assert towpath("recommend", tmp_path / "next", "--user", "ann", "--json").json["how"] == "model"
    assert "nothing is left to test it on" in towpath("evaluate", tmp_path / "next").sentence()
    answer = towpath("update", final, new, "--out", tmp_path / "another", "--epochs", 1)
    assert "3 new rows, with 1 new users and 1 new items" in answer.err


def test_update_with_nothing_new(towpath, final: Path, events: Path, tmp_path: Path) -> None:
    sentence = towpath("update", final, events, "--out", tmp_path / "next").sentence()
    assert sentence.startswith("Each of the 3,600 new rows repeats a pair that is there already")
    assert not (tmp_path / "next").exists()


def test_update_of_features(towpath, events: Path, tmp_path: Path) -> None:
    kinds = "".join(f"i{n},{'ab'[n % 2]},{n}\n" for n in range(80))
    (tmp_path / "items.csv").write_text("item,kind,price\n" + kinds)
    run = tmp_path / "run"
    small = ["--set", "epochs=1", "--set", "embedding_dim=4", "--set", "hidden=[4]", "--quiet"]
    made = ["fit", events, "--model", "wide_deep", "--item-features", tmp_path / "items.csv", "--out", run]
    assert towpath(*made, *small).code == 0
    (tmp_path / "new.csv").write_text("user,item,rating,time\nu1,new,5,2000\nu2,odd,5,2000\n")
    (tmp_path / "more.csv").write_text("item,kind,price\nnew,b,100\nodd,zzz,7\ni1,b,3\n")
    more = ["--item-features", tmp_path / "more.csv"]
    answer = towpath("update", run, tmp_path / "new.csv", "--out", tmp_path / "next", *more, "--epochs", 1)
    assert answer.code == 0, answer.err
    from towpath.serving.run import Run

    before, table = Run(run).split.train.item_features, Run(tmp_path / "next").split.train.item_features
    assert len(table) == 82
    [kind] = table.labels
    assert table.codes[80] == 2 + kind.values.index("b")
    assert table.codes[81] == 1  # unseen
    assert table.numbers[80:, 0].tolist() == [100, 7]
    assert table.codes[:80].tolist() == before.codes.tolist()
    assert table.numbers[:80].tolist() == before.numbers.tolist()
    silent = towpath("update", run, tmp_path / "new.csv", "--out", tmp_path / "third", "--epochs", 1)
    assert "No item features came with the new events" in silent.err
