"""Biased training file, random test file: from the shell, end to end."""

import csv
from pathlib import Path

import numpy as np
import pytest

from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

QUICK = ["--model", "mf", "--set", "epochs=3", "--set", "embedding_dim=8", "--set", "batch_size=256"]


def write(path: Path, rows: list[tuple], header: tuple[str, ...]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What a recommender showed, and what was shown at random to the same users."""
    folder = tmp_path_factory.mktemp("outside")
    world = make_latent_world(LatentWorld(users=120, items=60, shown_per_user=20), Rng(3))
    log, draw = world.exposures, np.random.default_rng(0)
    users, items = log.user_ids.ids(log.users), log.item_ids.ids(log.items)
    shown = list(zip(users, items, log.times.tolist(), log.labels.astype(int).tolist(), strict=True))
    train = write(folder / "train.csv", shown, ("user", "item", "time", "clicked"))
    random = [(u, i) for u in range(120) for i in draw.choice(60, 10, replace=False)]
    rows = [
        (log.user_ids.ids(np.array([u]))[0], log.item_ids.ids(np.array([i]))[0],
         int(draw.random() < world.relevance[u, i]))
        for u, i in random
    ]  # fmt: skip
    test = write(folder / "random.csv", [*rows, ("nobody", "item-01", 1)], ("user", "item", "clicked"))
    return {"train": train, "test": test, "folder": folder}


def test_a_random_test_file_is_evaluated_as_listed(towpath, files: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    fitted = towpath("fit", files["train"], "--label-col", "clicked", *QUICK, "--out", run)
    assert "2,400 rows:" in fitted.err
    assert "shown but not clicked" in fitted.err
    asked = ["evaluate", run, "--test", files["test"], "--candidates"]
    assert "1 rows are left out: 1 users and 0 items do not occur" in towpath(*asked, "listed").err
    found = towpath(*asked, "listed", "--json").json
    assert found["protocol"] == "listed"
    assert {"auc", "ndcg", "logloss", "calibration", "hit", "recall", "map"} <= set(found["metrics"])
    assert 0 < found["metrics"]["auc"] < 1
    low, high = found["intervals"]["auc"]
    assert low < found["metrics"]["auc"] < high
    whole = towpath(
        "evaluate", run, "--test", files["test"], "--candidates", "catalogue", "-k", "5,10", "--json"
    ).json
    assert whole["protocol"] == "full"
    assert {"hit@5", "hit@10"} <= set(whole["metrics"])


def test_files_become_the_parts_of_a_run(towpath, files: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    parts = ["--validation", files["test"], "--test", files["test"]]
    towpath("fit", files["train"], *QUICK, *parts, "--out", run)
    found = towpath("evaluate", run, "--protocol", "listed", "--json").json
    again = towpath("evaluate", run, "--test", files["test"], "--candidates", "listed", "--json").json
    assert found["metrics"] == again["metrics"]


def test_what_does_not_go_together_is_one_sentence(towpath, files: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    towpath("fit", files["train"], "--model", "popularity", "--out", run)
    asked = ["--test", files["test"], "--candidates", "listed", "--protocol", "full"]
    assert "both say what is ranked" in towpath("evaluate", run, *asked).sentence()
    candidates = write(tmp_path / "c.csv", [("user-001", "item-01")], ("user", "item"))
    answer = towpath("evaluate", run, "--test", files["test"], "--candidates", candidates)
    assert "test items are not among them" in answer.sentence()
