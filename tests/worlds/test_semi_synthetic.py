from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit

from small import small_interactions
from towpath.data.sources import read
from towpath.errors import ConfigError, DataError
from towpath.rng import Rng
from towpath.worlds.extraction import predict_ratings
from towpath.worlds.network import random_network
from towpath.worlds.semi_synthetic import SemiSyntheticWorld, _by_chance, make_semi_synthetic_world

SMALL = SemiSyntheticWorld(embedding_dim=4)


def rated(users=120, items=80, per_user=20, seed=0):
    """Whoever likes even items rates them high."""
    rows = small_interactions(users, items, per_user, seed)
    same = rows.users % 2 == rows.items % 2
    noise = Rng(seed).numpy("ratings").integers(-1, 2, len(rows))
    return replace(rows, values=np.clip(np.where(same, 4, 2) + noise, 1, 5).astype(np.float32))


@pytest.fixture(scope="module")
def by_chance():
    return make_semi_synthetic_world(rated(), SMALL, Rng(0))


def test_one_seed_gives_one_world(by_chance):
    again, other = (make_semi_synthetic_world(rated(), SMALL, Rng(seed)) for seed in (0, 1))
    np.testing.assert_array_equal(by_chance.relevance, again.relevance)
    np.testing.assert_array_equal(by_chance.propensity, again.propensity)
    np.testing.assert_array_equal(by_chance.log.pair_keys(), again.log.pair_keys())
    assert not np.array_equal(by_chance.propensity, other.propensity)


@pytest.mark.parametrize("density", [None, 0.03, 0.1])
def test_cut_off_has_exactly_the_density(density):
    world = make_semi_synthetic_world(
        rated(), SMALL.model_copy(update={"clicks": "cut-off", "density": density}), Rng(0)
    )
    target = (density or 20 / 80) * world.relevance.size
    assert abs(len(world.log) - target) <= 1


def test_cut_off_clicks_are_the_likeliest_pairs():
    world = make_semi_synthetic_world(rated(), SMALL.model_copy(update={"clicks": "cut-off"}), Rng(0))
    chances = world.relevance * world.propensity
    clicked = np.zeros(chances.shape, dtype=bool)
    clicked[world.log.users, world.log.items] = True
    assert chances[clicked].min() >= chances[~clicked].max()
    assert world.exposures is not None
    assert len(world.exposures) == len(world.log)


def test_the_mean_of_both_chances_is_the_density(by_chance):
    # P(Y) = P(R) P(O) for every pair; the shift makes its mean that of the ratings.
    assert (by_chance.relevance * by_chance.propensity).mean() == pytest.approx(20 / 80, rel=1e-3)


def test_clicks_by_chance_follow_the_product_of_both_chances():
    world = make_semi_synthetic_world(rated(30, 40, 10), SMALL, Rng(0))
    counts = np.zeros((30, 40))
    for seed in range(2_000):
        users, items, clicks = _by_chance(world.relevance, world.propensity, 0.0, Rng(seed))
        counts[users[clicks], items[clicks]] += 1
    expected = world.relevance * world.propensity
    spread = np.sqrt(expected * (1 - expected) / 2_000)
    assert np.abs((counts / 2_000 - expected) / spread).max() < 5


def test_click_rate_of_a_drawn_world_is_the_target():
    rates = [len(make_semi_synthetic_world(rated(), SMALL, Rng(seed)).log) / (120 * 80) for seed in range(3)]
    assert np.mean(rates) == pytest.approx(20 / 80, abs=4 * np.sqrt(0.25 * 0.75 / (3 * 120 * 80)))


def test_known_propensities_recover_the_true_risk_where_the_naive_mean_does_not():
    """Twenty draws of a world whose exposure follows relevance; the risk is that of a predictor of 1."""
    settings = SMALL.model_copy(update={"network_share": 0.0, "exposure_scale": 1.0})
    world = make_semi_synthetic_world(rated(), settings, Rng(0))
    naive, corrected = [], []
    truth = world.relevance.mean()
    for seed in range(20):
        users, items, clicks = _by_chance(world.relevance, world.propensity, 0.0, Rng(seed))
        naive.append(clicks.mean() - truth)
        corrected.append((clicks / world.propensity[users, items]).sum() / world.relevance.size - truth)
    assert abs(np.mean(naive)) > 0.02
    assert abs(np.mean(corrected)) < 0.1 * abs(np.mean(naive))


def test_extracted_signals_resemble_the_originals():
    data = rated()
    world = make_semi_synthetic_world(data, SMALL.model_copy(update={"network_share": 0.0}), Rng(0))
    assert np.corrcoef(world.relevance[data.users, data.items], data.values)[0, 1] > 0.5
    taken = np.zeros(world.propensity.shape)
    taken[data.users, data.items] = 1
    assert np.corrcoef(taken.ravel(), world.propensity.ravel())[0, 1] > 0.3


def test_relevance_is_the_paper_s_curve_of_the_rating():
    data = rated()
    world = make_semi_synthetic_world(data, SMALL, Rng(0))
    ratings = predict_ratings(data, 4, Rng(0))
    np.testing.assert_allclose(world.relevance, expit(ratings - 3) ** 2, rtol=1e-5)
    assert ratings.min() >= 1
    assert ratings.max() <= 5


@pytest.mark.parametrize(("scale", "share"), [(0.5, 1.0), (2.0, 0.5), (1.0, 0.0)])
def test_exposure_logits_have_the_shift_and_scale_that_were_asked_for(scale, share):
    settings = SMALL.model_copy(
        update={"exposure_scale": scale, "exposure_shift": -0.5, "network_share": share}
    )
    world = make_semi_synthetic_world(rated(), settings, Rng(0))
    logits = np.log(world.propensity) - np.log1p(-world.propensity.astype(np.float64))
    assert logits.mean() == pytest.approx(-0.5, abs=1e-3)
    assert logits.std() == pytest.approx(scale, rel=1e-3)


def test_network_by_hand():
    users, items = torch.tensor([[1.0, -2.0]]), torch.tensor([[0.5, 1.0], [3.0, -1.0]])
    draw = Rng(5).torch("world", "network")
    layers = [torch.randn(n, m, generator=draw) * (2 / n) ** 0.5 for n, m in ((4, 32), (32, 16), (16, 1))]
    pair = torch.cat([users[0], items[1]])
    expected = torch.relu(torch.relu(pair @ layers[0]) @ layers[1]) @ layers[2]
    assert random_network(users, items, Rng(5))[0, 1] == pytest.approx(float(expected), rel=1e-5)


def test_data_without_ratings_say_so():
    with pytest.raises(DataError, match="needs ratings, but the data have no column"):
        make_semi_synthetic_world(small_interactions(), SMALL, Rng(0))
    same = replace(small_interactions(), values=np.ones(60 * 12, dtype=np.float32))
    with pytest.raises(DataError, match="ratings that differ"):
        make_semi_synthetic_world(same, SMALL, Rng(0))


def test_more_clicks_than_relevance_allows_say_so():
    with pytest.raises(ConfigError, match="cannot be had when the mean relevance"):
        make_semi_synthetic_world(rated(), SMALL.model_copy(update={"density": 0.9}), Rng(0))


DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.mark.skipif(not (DATA / "ml-100k").exists(), reason="needs MovieLens 100k in ../shared/data")
@pytest.mark.slow
def test_a_world_from_movielens_has_its_size_and_density():
    data = read("ml-100k", data_dir=DATA).interactions
    world = make_semi_synthetic_world(data, SemiSyntheticWorld(embedding_dim=8), Rng(0))
    assert world.relevance.shape == (943, 1682)
    assert len(world.log) == pytest.approx(100_000, rel=0.02)
    assert np.corrcoef(world.relevance[data.users, data.items], data.values)[0, 1] > 0.5
