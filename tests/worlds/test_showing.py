import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.errors import ConfigError
from towpath.rng import Rng
from towpath.worlds.showing import show_lists, show_softly


def scores(users=50, items=40, seed=0):
    return Rng(seed).numpy("scores").standard_normal((users, items), dtype=np.float32)


@given(st.integers(1, 20), st.floats(0, 1), st.integers(0, 15), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_lists_keep_out_what_is_hidden_and_chances_add_up(length, exploration, hidden, seed):
    some = scores(seed=seed)
    some[:, :hidden] = -np.inf
    shown = show_lists(some, length, exploration, Rng(seed).numpy("show"))
    assert len(shown.users) == 50 * length == len({*zip(shown.users, shown.items, strict=True)})
    assert shown.items.min() >= hidden
    np.testing.assert_allclose(shown.propensity.sum(axis=1), length, rtol=1e-4)
    assert np.all(shown.propensity[:, :hidden] == 0)
    assert np.all(shown.propensity[shown.users, shown.items] > 0)


def test_the_fixed_part_is_the_top_of_the_scores():
    some = scores()
    shown = show_lists(some, 5, 0.0, Rng(0).numpy("show"))
    best = np.sort(np.argsort(-some, axis=1)[:, :5], axis=1)
    np.testing.assert_array_equal(np.sort(shown.items.reshape(50, 5), axis=1), best)


def test_what_was_drawn_follows_the_chances():
    some = scores(users=1, items=12)
    drawn = np.zeros(12)
    for seed in range(2_000):
        drawn[show_lists(some, 4, 0.5, Rng(seed).numpy("show")).items] += 1
    np.testing.assert_allclose(
        drawn / 2_000, show_lists(some, 4, 0.5, Rng(0).numpy("show")).propensity[0], atol=0.05
    )


@pytest.mark.parametrize("temperature", [0.05, 0.5, 5.0])
def test_soft_lists_have_their_length_on_average(temperature):
    shown = show_softly(scores(users=400), 8, temperature, Rng(0).numpy("show"))
    np.testing.assert_allclose(shown.propensity.sum(axis=1), 8, rtol=1e-3)
    assert len(shown.users) / 400 == pytest.approx(8, abs=4 * np.sqrt(8 / 400))
    assert 0 <= shown.propensity.min() < shown.propensity.max() <= 1


def test_temperature_is_a_dial_of_overlap():
    least = [show_softly(scores(), 8, t, Rng(0).numpy("show")).propensity.min() for t in (0.1, 1.0, 100.0)]
    assert least[0] < 1e-6 < least[1] < least[2]
    assert least[2] == pytest.approx(8 / 40, rel=0.05)


def test_more_than_may_be_shown_says_so():
    some = scores()
    some[3, :35] = -np.inf
    with pytest.raises(ConfigError, match="must not exceed the 5 items"):
        show_lists(some, 6, 0.0, Rng(0).numpy("show"))
