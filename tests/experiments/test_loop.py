from dataclasses import replace

import numpy as np
import pytest

from towpath.errors import ConfigError
from towpath.experiments import loop
from towpath.experiments.loop import Arm, LoopSettings, Start, first_clicks, gini, run_loop
from towpath.experiments.pool import Work
from towpath.methods.recipe import Recipe
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

QUICK = Recipe("mf", settings={"epochs": 2, "embedding_dim": 4})
ARMS = [Arm("plain", QUICK), Arm("popularity", Recipe("popularity"))]


@pytest.fixture(scope="module")
def world():
    return make_latent_world(LatentWorld(users=120, items=90, shown_per_user=20), Rng(0))


@pytest.fixture(scope="module")
def played(world):
    return run_loop(Start(world, LoopSettings(rounds=3, k=5), 0), ARMS)


def test_every_arm_plays_every_round(played):
    assert [(one.arm, one.number) for one in played] == [
        (name, n) for name in ("plain", "popularity") for n in (1, 2, 3)
    ]


def test_nothing_beats_the_best_list_and_clicks_follow_relevance(played):
    for one in played:
        assert 0 < one.relevance <= one.best
        assert one.click_through == pytest.approx(one.relevance / 5, abs=4 * np.sqrt(0.25 / (120 * 5)))
        assert 0 <= one.true_hit <= 1


def test_uniform_random_lists_do_not_drift():
    world = make_latent_world(LatentWorld(users=600, items=60, shown_per_user=20), Rng(1))
    start = Start(world, LoopSettings(rounds=12, k=6, again=True), 0)
    rounds = run_loop(start, [Arm("random", None)])
    places = 600 * 6
    for name, per_place in (
        ("popularity", world.log.item_counts / 600),
        ("relevance", world.relevance.mean(axis=0) * 6),
    ):
        values = np.array([getattr(one, name) for one in rounds])
        spread = float(per_place.std()) / np.sqrt(places)
        slope = np.polyfit(np.arange(12), values, 1)[0]
        assert abs(slope) < 4 * spread / np.sqrt(np.sum((np.arange(12) - 5.5) ** 2)), name
        assert abs(values.mean() - float(per_place.mean())) < 4 * max(spread, 0.02), name
    assert all(one.coverage == 1 for one in rounds)
    assert {one.promised_hit for one in rounds} == {0.1}


def test_a_recommender_does_drift(played):
    popularity = [one for one in played if one.arm == "popularity"]
    assert popularity[0].concentration > 0.5
    assert popularity[-1].popularity != popularity[0].popularity


def test_a_stored_loop_goes_on_to_the_same_floats(world, played, tmp_path, monkeypatch):
    short = Start(world, LoopSettings(rounds=2, k=5), 0)
    run_loop(short, ARMS, Work(folder=tmp_path))
    longer = replace(short, settings=LoopSettings(rounds=3, k=5))
    assert run_loop(longer, ARMS, Work(folder=tmp_path)) == played
    monkeypatch.setattr(loop, "fit", lambda *_: pytest.fail("it was computed again"))
    assert run_loop(longer, ARMS, Work(folder=tmp_path)) == played


def test_other_settings_are_another_loop(world, tmp_path):
    first = run_loop(Start(world, LoopSettings(rounds=1, k=5), 0), ARMS[1:], Work(folder=tmp_path))
    other = run_loop(Start(world, LoopSettings(rounds=1, k=4), 0), ARMS[1:], Work(folder=tmp_path))
    assert first[0].relevance > other[0].relevance


def test_nobody_is_shown_what_they_clicked_unless_asked_for(world):
    start = Start(world, LoopSettings(rounds=1, k=5), 0)
    log = first_clicks(world.exposures)
    for again in (False, True):
        scores, _ = loop._recommend(replace(start, settings=LoopSettings(k=5, again=again)), ARMS[0], log, 1)
        assert np.all(np.isneginf(scores[log.users, log.items])) != again


def test_every_round_is_reported(world):
    heard = []
    run_loop(Start(world, LoopSettings(rounds=2, k=5), 0), ARMS[1:], Work(on_result=heard.append))
    assert [one.number for one in heard] == [1, 2]


def test_arms_share_their_luck(world):
    twins = [Arm("a", Recipe("popularity")), Arm("b", Recipe("popularity"))]
    a, b = run_loop(Start(world, LoopSettings(rounds=1, k=5), 0), twins)
    assert replace(a, arm="b") == b


def test_a_wrong_setting_is_said_before_the_first_round(world):
    arms = [ARMS[1], Arm("plain", Recipe("mf", settings={"epoch": 2}))]
    with pytest.raises(ConfigError, match="did you mean 'epochs'"):
        run_loop(Start(world, LoopSettings(), 0), arms, Work(on_result=lambda one: pytest.fail("it began")))


def test_gini_by_hand():
    assert gini(np.array([1, 1, 1, 1])) == 0
    assert gini(np.array([0, 0, 0, 8])) == 0.75
    assert gini(np.array([1, 3])) == pytest.approx(0.25)
