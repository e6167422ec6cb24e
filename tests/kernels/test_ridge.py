import pytest
import torch

from towpath.errors import TrainingError
from towpath.kernels import ridge
from towpath.kernels.ridge import gram_matrices, ridge_solve


def example(rows: int = 5, others: int = 30, dim: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(rows, others, generator=generator), torch.randn(others, dim, generator=generator)


@pytest.mark.parametrize("most", [2**22, 70])
def test_gram_matrices_are_the_weighted_sums_of_outer_products(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(ridge, "_MOST_NUMBERS", most)  # 70: seven vectors at a time
    weights, vectors = example()
    expected = torch.einsum("bn,nd,ne->bde", weights, vectors, vectors)
    torch.testing.assert_close(gram_matrices(weights, vectors), expected)


def test_each_solution_solves_its_regression() -> None:
    weights, vectors = example()
    gram, right = gram_matrices(weights, vectors), weights @ vectors
    found = ridge_solve(gram, right, 0.5)
    assert found.dtype == right.dtype
    torch.testing.assert_close((gram @ found[..., None])[..., 0] + 0.5 * found, right)


def test_a_ridge_that_rounding_swallows_is_refused() -> None:
    gram = torch.ones(3, 2, 2)
    gram[1, 0, 0] = -1.0
    with pytest.raises(TrainingError, match=r"1 of 3 regressions .* raise it"):
        ridge_solve(gram, torch.ones(3, 2), 1e-3)


def test_fewer_matrices_are_held_when_they_are_larger() -> None:
    assert ridge.rows_for(32) == 4096
    assert ridge.rows_for(10_000) == 1
