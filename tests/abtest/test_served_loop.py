"""The loop from end to end: train, serve, click, log, export, train again, swap, test."""

import socket

import numpy as np
import pyarrow.parquet as pq
import pytest

from served import running, save_model, settings_of  # skips where the extra `serve` is not installed
from towpath.abtest.loop_page import learning_sentences, loop_page, models_table, truth_table
from towpath.abtest.served_loop import (
    ServedLoopSettings,
    SimulatedClock,
    Start,
    fresh_folder,
    run_served_loop,
    served_interactions,
)
from towpath.abtest.visitors import Server
from towpath.errors import ConfigError, TowpathError
from towpath.methods.recipe import Recipe
from towpath.reports.page import to_html
from towpath.rng import Rng
from towpath.serving.exposure_log.read import read_log
from towpath.worlds.latent import LatentWorld, make_latent_world

QUICK = {"epochs": 2, "embedding_dim": 4, "batch_size": 256}
WORLD = make_latent_world(LatentWorld(users=80, items=50, shown_per_user=20), Rng(0))


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Eight days of two arms, trained again in every third night."""
    folder = fresh_folder(tmp_path_factory.mktemp("loop") / "served")
    arms = {"plain": Recipe("mf", settings=QUICK), "transport": Recipe("mf", "transport", QUICK)}
    settings = ServedLoopSettings(days=8, retrain_every=3, visitors={"k": 5, "visits": 0.5})
    said = []
    return run_served_loop(Start(WORLD, arms, settings, 0, folder), said.append), folder, said


def test_days_and_nights_pass(played):
    loop, folder, said = played
    assert [day.day for day in loop.days if day.arm == "plain"] == list(range(8))
    assert sorted(path.name for path in (folder / "models").iterdir()) == [
        "plain-000", "plain-003", "plain-006", "transport-000", "transport-003", "transport-006",
    ]  # fmt: skip
    assert len(said) == 2 + 8 + 2
    assert {len(shares) for shares in loop.weeks().values()} == {2}


def test_the_log_has_every_visit_and_every_version(played):
    loop, folder, _ = played
    log = read_log(str(folder / "log"))
    assert len(log.requests) == sum(day.lists for day in loop.days)
    clicks = [row for row in log.outcomes.to_pylist() if row["kind"] == "click"]
    assert len(clicks) == round(sum(day.lists * day.clicks for day in loop.days))
    assert len(set(log.requests["model_version"].to_pylist())) == 6
    days = {time // 86_400_000_000 for time in log.requests["time"].to_pylist()}
    assert len(days) == 8


def test_the_ab_test_stands_next_to_the_truth(played):
    loop, _, _ = played
    told = loop.experiment.to_json()
    assert told["arms"] == ["plain", "transport"]
    assert told["srm"]["mismatch"] is False
    assert sum(told["users"].values()) <= 80
    assert set(loop.true_lifts()) == {"transport"}
    for day in loop.days:
        assert day.relevance > 0
        assert 0 < day.of_best <= 1
    (clicks,) = [one for one in loop.experiment.lifts if one.metric == "click_rate"]
    assert clicks.relative.covers(loop.true_lifts()["transport"]["click_rate"])


def test_the_page_says_what_each_arm_has_learned(played):
    loop, _, _ = played
    gain = loop.models["transport"].start.gain
    sentences = learning_sentences(loop)
    assert [sentence.split(":")[0] for sentence in sentences] == ["plain", "transport"]
    assert f"week 2 gets {gain.mean:+.2f} ({gain.low:+.2f} to {gain.high:+.2f}) clicks" in sentences[1]
    assert models_table(loop).columns[-1] == "week 2 less week 1"
    assert len(models_table(loop).rows) == 4
    truths = {row[1]: row[3] for row in truth_table(loop).rows}
    lifts = loop.true_lifts()["transport"]
    assert truths == {"clicks": 100 * lifts["click_rate"], "value of orders": 100 * lifts["value_per_list"]}
    page = to_html(loop_page(loop))
    assert all(sentence in page for sentence in sentences)


def test_each_arm_learns_from_what_it_has_shown_itself(played):
    _, folder, _ = played
    table = pq.read_table(folder / "shown.parquet")
    for arm in ("plain", "transport"):
        rows = served_interactions(WORLD.exposures, folder / "shown.parquet", arm)
        mine = table.filter(np.array(table["policy"].to_pylist()) == arm)
        assert rows.user_ids.ids(rows.users) == mine["user"].to_pylist()
        assert rows.item_ids.ids(rows.items) == mine["item"].to_pylist()
        assert rows.labels.tolist() == [label == 1 for label in mine["label"].to_pylist()]
        assert rows.times.min() > WORLD.exposures.times.max()
        assert 0 < rows.propensities.min() <= rows.propensities.max() <= 1


def test_a_simulated_clock_never_goes_back():
    clock = SimulatedClock()
    clock.set(1, 0.5)
    first = clock()
    clock.set(0, 0.5)
    assert clock() > first


def test_one_arm_and_a_folder_in_use_are_refused(tmp_path):
    start = Start(WORLD, {"plain": Recipe()}, ServedLoopSettings(), 0, tmp_path)
    with pytest.raises(ConfigError, match="two arms"):
        run_served_loop(start, print)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="already exists"):
        fresh_folder(tmp_path)


def test_a_client_asks_again_after_the_server_has_let_go_of_the_connection(tmp_path):
    folder = save_model(tmp_path / "mf")
    with running(settings_of(tmp_path / "log", only=folder)) as client:
        server = Server(client.port)
        assert server.post("/recommend", {"user": "u1", "k": 2})["items"]
        server._connection.sock.shutdown(socket.SHUT_RDWR)  # as after a long night
        server.close()
        assert server.post("/recommend", {"user": "u1", "k": 2})["items"]
        with pytest.raises(TowpathError, match="answered 400 to /recommend"):
            server.post("/recommend", {"user": "u1", "k": 0})
        server.close()
