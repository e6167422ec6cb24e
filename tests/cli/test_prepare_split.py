"""towpath data prepare: a split that towpath fit takes as its data."""

from pathlib import Path

QUICK = ["--model", "mf", "--set", "epochs=2", "--set", "embedding_dim=4", "--set", "batch_size=512"]


def test_fitting_a_prepared_split_is_fitting_the_data(towpath, events: Path, tmp_path: Path) -> None:
    asked = ["--min-per-user", "3", "--split", "time"]
    made = towpath("data", "prepare", events, *asked, "--out", tmp_path / "split", "--json").json
    direct = towpath("fit", events, *asked, *QUICK, "--out", tmp_path / "a", "--json").json
    found = towpath("fit", tmp_path / "split", *QUICK, "--out", tmp_path / "b", "--json").json
    assert made["fingerprint"] == direct["fingerprint"] == found["fingerprint"]
    assert (made["users"], made["items"]) == (direct["users"], direct["items"])
    assert found["metrics"] == direct["metrics"]
    assert made["train"] + made["validation"] + made["test"] == 3600
    evaluated = [towpath("evaluate", tmp_path / run, "--json").json["metrics"] for run in "ab"]
    assert evaluated[0] == evaluated[1]


def test_a_prepared_split_is_not_prepared_again(towpath, events: Path, tmp_path: Path) -> None:
    towpath("data", "prepare", events, "--out", tmp_path / "split")
    refused = towpath("fit", tmp_path / "split", "--min-rating", "3", "--out", tmp_path / "run")
    assert refused.code == 2
    assert "is a split already, which --min-rating cannot change" in refused.err
    again = towpath("data", "prepare", events, "--out", tmp_path / "split")
    assert again.code == 2
    assert "already exists" in again.err
