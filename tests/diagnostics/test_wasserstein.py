"""The exact distance: by hand, against POT, and above what any critic says."""

import numpy as np
import ot
import pytest

from towpath.diagnostics.wasserstein import critic_distance, sample_wasserstein, wasserstein
from towpath.errors import DataError
from towpath.rng import Rng


def case(seed: int, n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = Rng(seed).numpy("case")
    points = rng.normal(size=(n, 3))
    a, b = rng.dirichlet(np.ones(n), size=2)
    return a, b, points, np.linalg.norm(points[:, None] - points, axis=2)


def test_by_hand() -> None:
    z = np.array([0.0, 1.0, 3.0])
    distances = np.abs(z[:, None] - z)
    assert wasserstein(np.array([1.0, 0, 0]), np.array([0, 0.5, 0.5]), distances) == pytest.approx(2.0)
    assert wasserstein(np.array([0.5, 0.5, 0]), np.array([0.5, 0.5, 0]), distances) == 0


@pytest.mark.parametrize("seed", range(3))
def test_against_pot(seed: int) -> None:
    a, b, points, distances = case(seed)
    assert wasserstein(a, b, distances) == pytest.approx(ot.emd2(a, b, distances), abs=1e-9)
    other = points[::-1] + 1.0
    assert sample_wasserstein(points, other) == pytest.approx(
        ot.emd2([], [], ot.dist(points, other, metric="euclidean")), abs=1e-9
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_critic_says_more_and_the_best_one_says_it(seed: int) -> None:
    a, b, points, distances = case(seed)
    exact = wasserstein(a, b, distances)
    for direction in Rng(seed).numpy("critic").normal(size=(20, 3)):
        assert critic_distance(points @ direction, a, b, distances) <= exact + 1e-9
    _, duals = ot.emd2(a, b, distances, return_matrix=False, log=True)
    best = -np.asarray(duals["v"])  # on common points the optimal potentials are opposite
    assert critic_distance(best, a, b, distances) == pytest.approx(exact, rel=1e-6)


def test_a_critic_without_slope_says_nothing() -> None:
    a, b, _, distances = case(0)
    assert critic_distance(np.ones(40), a, b, distances) == 0


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(DataError, match="totals agree"):
        wasserstein(np.array([1.0, 0.0]), np.array([0.5, 0.0]), np.zeros((2, 2)))
    with pytest.raises(DataError, match="one shape"):
        sample_wasserstein(np.zeros((3, 2)), np.zeros((4, 2)))
