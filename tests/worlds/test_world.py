import numpy as np
import pyarrow as pa
import pytest

from towpath.data.interactions import Interactions
from towpath.data.vocabulary import Vocabulary
from towpath.errors import ConfigError
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world
from towpath.worlds.world import World


def by_hand() -> World:
    """Two users, three items; user 0 was shown items 0 and 1, user 1 only 1; both clicked 1."""
    exposures = Interactions(
        users=np.array([0, 0, 1], dtype=np.int32),
        items=np.array([0, 1, 1], dtype=np.int32),
        user_ids=Vocabulary(pa.array(["ann", "bob"])),
        item_ids=Vocabulary(pa.array(["a", "b", "c"])),
        values=np.array([0, 1, 1], dtype=np.float32),
    )
    relevance = np.array([[0.1, 0.2, 0.6], [0.5, 0.4, 0.3]], dtype=np.float32)
    return World(relevance, None, exposures, exposures.where(exposures.values == 1))


def test_oracles_by_hand():
    world = by_hand()
    np.testing.assert_allclose(world.best_relevance(2), [0.8, 0.9], rtol=1e-6)
    np.testing.assert_allclose(world.chance_relevance(2), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(world.popularity_relevance(1), [0.2, 0.4], rtol=1e-6)


def test_hidden_pairs_are_not_shown():
    world = by_hand()
    np.testing.assert_allclose(world.best_relevance(1, world.log), [0.6, 0.5], rtol=1e-6)
    np.testing.assert_allclose(world.chance_relevance(1, world.log), [0.35, 0.4], rtol=1e-6)
    np.testing.assert_allclose(world.popularity_relevance(2, world.log), [0.7, 0.8], rtol=1e-6)


def test_shares_by_hand():
    assert by_hand().shown_share() == 0.5
    assert by_hand().click_rate() == pytest.approx(2 / 3)


@pytest.mark.parametrize("k", [0, -1, 3])
def test_a_list_longer_than_what_is_left_says_so(k):
    with pytest.raises(ConfigError, match="between 1 and 2 items"):
        by_hand().best_relevance(k, by_hand().log)


def test_best_beats_popularity_beats_chance():
    world = make_latent_world(LatentWorld(users=300, items=200, shown_per_user=30), Rng(0))
    best, popular, chance = (
        oracle(10).mean()
        for oracle in (world.best_relevance, world.popularity_relevance, world.chance_relevance)
    )
    assert chance < popular < best <= 10
