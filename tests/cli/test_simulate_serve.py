import json

import served


def test_the_served_loop_is_a_command(towpath, tmp_path):
    assert served
    settings = ["--set", "users=60", "--set", "items=40", "--set", "shown_per_user=15"]
    assert towpath("simulate", "create", "--out", tmp_path / "world", *settings).code == 0
    quick = [
        "--arms",
        "plain,ipw",
        "--days",
        "2",
        "--k",
        "3",
        "--set",
        "epochs=1",
        "--set",
        "embedding_dim=4",
    ]
    told = towpath("simulate", "serve", tmp_path / "world", *quick, "--out", tmp_path / "loop", "--json").json
    assert list(told["weeks"]) == ["plain", "ipw"]
    assert told["experiment"]["arms"] == ["plain", "ipw"]
    assert {arm: sorted(weekly) for arm, weekly in told["models"].items()} == {
        arm: ["better", "end", "end_gain", "start", "start_gain"] for arm in ("plain", "ipw")
    }
    assert {path.name for path in (tmp_path / "loop").iterdir()} == {
        "experiment.html", "log", "models", "results.json", "shown.parquet",
    }  # fmt: skip
    assert json.loads((tmp_path / "loop" / "results.json").read_text()) == told
    page = (tmp_path / "loop" / "experiment.html").read_text()
    for heading in ("The test and the truth", "Do arms get better by learning", "The lists of each week"):
        assert heading in page
    again = towpath("simulate", "serve", tmp_path / "world", *quick, "--out", tmp_path / "loop")
    assert "already exists" in again.sentence()
