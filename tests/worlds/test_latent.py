import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from towpath.errors import ConfigError
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world

SMALL = LatentWorld(users=200, items=120, shown_per_user=20)


def test_one_seed_gives_one_world():
    first, again, other = (make_latent_world(SMALL, Rng(seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.relevance, again.relevance)
    np.testing.assert_array_equal(first.log.items, again.log.items)
    np.testing.assert_array_equal(first.log.times, again.log.times)
    assert not np.array_equal(first.relevance, other.relevance)


@given(st.integers(1, 40), st.integers(2, 40), st.floats(0, 1), st.floats(0.02, 0.9), st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_every_world_is_well_formed(users, items, exploration, mean, seed):
    shown = max(1, items // 2)
    made = make_latent_world(
        LatentWorld(
            users=users, items=items, shown_per_user=shown, exploration=exploration, mean_relevance=mean
        ),
        Rng(seed),
    )
    seen = made.exposures
    assert len(seen) == users * shown == len({*zip(seen.users.tolist(), seen.items.tolist(), strict=True)})
    assert np.all(np.diff(seen.users.astype(np.int64) * 10**9 + seen.times) >= 0)
    assert made.relevance.mean() == pytest.approx(mean, abs=0.01)
    np.testing.assert_allclose(made.propensity.sum(axis=1), shown, rtol=1e-4)
    assert np.all(made.propensity[seen.users, seen.items] > 0)
    assert len(made.log) == seen.values.sum()


@pytest.mark.parametrize(("exploration", "least"), [(0.0, 0.0), (1.0, 20 / 120)])
def test_exploration_is_the_dial_of_overlap(exploration, least):
    made = make_latent_world(SMALL.model_copy(update={"exploration": exploration}), Rng(0))
    assert made.propensity.min() == pytest.approx(least)


def test_deterministic_exposure_is_a_fixed_top_list_and_never_leaves_it():
    made = make_latent_world(SMALL.model_copy(update={"exploration": 0.0}), Rng(0))
    shown = np.zeros(made.relevance.shape, dtype=bool)
    shown[made.exposures.users, made.exposures.items] = True
    np.testing.assert_array_equal(shown, made.propensity == 1)


def test_click_rate_follows_the_truth():
    made = make_latent_world(LatentWorld(users=2_000, items=200, shown_per_user=50), Rng(1))
    seen = made.exposures
    expected = made.relevance[seen.users, seen.items].mean()
    assert made.click_rate() == pytest.approx(expected, abs=4 * np.sqrt(0.25 / len(seen)))


def test_known_propensities_recover_the_true_click_rate_where_the_naive_mean_does_not():
    naive, corrected = [], []
    for seed in range(20):
        made = make_latent_world(SMALL.model_copy(update={"exploration": 0.5}), Rng(seed))
        truth = made.relevance.mean()
        naive.append(made.click_rate() - truth)
        weighted = made.exposures.values / made.exposures.propensities
        corrected.append(weighted.sum() / made.relevance.size - truth)
    assert abs(np.mean(corrected)) < 0.1 * abs(np.mean(naive))


def test_the_earlier_recommender_shows_better_than_random():
    made = make_latent_world(SMALL, Rng(0))
    assert made.click_rate() > 1.5 * made.relevance.mean()


def test_more_shown_than_there_is_says_so():
    with pytest.raises(ConfigError, match="must not exceed the 10 items"):
        make_latent_world(LatentWorld(users=5, items=10, shown_per_user=11), Rng(0))


def test_unknown_setting_is_an_error():
    with pytest.raises(ValidationError, match="extra"):
        LatentWorld(user=5)
