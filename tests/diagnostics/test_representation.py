"""Vectors and cells of users from the training log alone."""

import numpy as np
import pytest

from towpath.diagnostics.representation import represent
from towpath.rng import Rng


def test_cells_find_the_kinds_of_users() -> None:
    rng = Rng(0).numpy("users")
    kind = np.arange(800) % 2
    users = np.repeat(np.arange(800), 10)
    items = rng.integers(10, size=8000) + 10 * kind[users]
    found = represent(users, items, (801, 20), Rng(1).numpy("svd"))
    cells = found.cells(Rng(1).numpy("cells"))[:800]
    assert len(np.unique(cells)) > 1
    for cell in np.unique(cells):
        assert len(np.unique(kind[cells == cell])) == 1
    assert np.linalg.norm(found.users[:800], axis=1) == pytest.approx(1)
    assert (found.users[800] == 0).all()  # nobody knows the last one
    assert found.pairs(np.array([0, 1]), np.array([3, 4])).shape == (2, 2 * found.users.shape[1])


def test_few_users_are_one_cell() -> None:
    found = represent(np.array([0, 1]), np.array([0, 0]), (2, 1), Rng(0).numpy("svd"))
    assert found.cells(Rng(0).numpy("cells")).tolist() == [0, 0]


def test_the_same_seed_gives_the_same_vectors() -> None:
    rng = Rng(2).numpy("events")
    users, items = rng.integers(60, size=500), rng.integers(30, size=500)
    one, two = (represent(users, items, (60, 30), Rng(5).numpy("svd")) for _ in range(2))
    assert np.array_equal(one.users, two.users)
