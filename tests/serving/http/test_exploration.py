from collections import Counter
from itertools import permutations
from math import exp, prod

import numpy as np
import pytest

from towpath.serving.http.exploration import Slate, explore
from towpath.serving.http.settings import Exploration

SCORES = np.array([0.3, -np.inf, 1.2, 0.9, -0.5], dtype=np.float32)
BEST = Slate([2, 3], [1.2, 0.9], [1.0, 1.0])


def chances(exploration):
    """Each slate's chance as logged, and how often it came, of 20,000 draws."""
    draw = np.random.default_rng(0)
    logged, counts = {}, Counter()
    for _ in range(20_000):
        slate = explore(SCORES, BEST, 2, exploration, draw)
        key = tuple(slate.items)
        logged[key] = prod(slate.propensities)
        counts[key] += 1
    return logged, counts


@pytest.mark.parametrize("exploration", [Exploration(epsilon=0.4), Exploration(softmax=0.7)])
def test_logged_chances_are_those_of_the_slates(exploration):
    logged, counts = chances(exploration)
    assert set(logged) == set(permutations([0, 2, 3, 4], 2))  # all but what is hidden
    assert sum(logged.values()) == pytest.approx(1)
    for slate, chance in logged.items():
        assert counts[slate] / 20_000 == pytest.approx(chance, abs=4 * (chance / 20_000) ** 0.5)


def test_epsilon_by_hand():
    logged, _ = chances(Exploration(epsilon=0.4))
    assert logged[2, 3] == pytest.approx((0.6 + 0.4 / 4) * (0.6 + 0.4 / 3))
    assert logged[3, 2] == pytest.approx((0.4 / 4) * (0.6 + 0.4 / 3))
    assert logged[0, 4] == pytest.approx((0.4 / 4) * (0.4 / 3))


def test_softmax_by_hand():
    logged, _ = chances(Exploration(softmax=0.7))
    weights = {item: exp(float(SCORES[item]) / 0.7) for item in (0, 2, 3, 4)}
    total = sum(weights.values())
    assert logged[4, 0] == pytest.approx(weights[4] / total * weights[0] / (total - weights[4]), rel=1e-6)


def test_without_exploration_the_best_list_is_certain():
    assert explore(SCORES, BEST, 2, Exploration(), np.random.default_rng(0)) is BEST


def test_a_cold_softmax_is_the_best_list():
    slate = explore(SCORES, BEST, 2, Exploration(softmax=1e-4), np.random.default_rng(0))
    assert slate.items == [2, 3]
    assert slate.propensities == pytest.approx([1, 1])


@pytest.mark.parametrize("exploration", [Exploration(epsilon=1.0), Exploration(softmax=5.0)])
def test_all_that_is_left_is_shown_once(exploration):
    every = Slate([2, 3, 0, 4], [1.2, 0.9, 0.3, -0.5], [1.0] * 4)
    slate = explore(SCORES, every, 10, exploration, np.random.default_rng(1))
    assert sorted(slate.items) == [0, 2, 3, 4]
    assert slate.propensities[-1] == pytest.approx(1)
