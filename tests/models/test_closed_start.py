import numpy as np
import pytest
import torch

from small import small_split
from towpath.models.closed_start import Operator, decompose, start_from_data
from towpath.models.ease import interaction_matrix
from towpath.rng import Rng


def matrix(values: list[float], rows: int = 40, columns: int = 30) -> torch.Tensor:
    """A matrix with these singular values."""
    rng = torch.Generator().manual_seed(1)
    left, right = (torch.linalg.qr(torch.randn(n, len(values), generator=rng)).Q for n in (rows, columns))
    return (left * torch.tensor(values)) @ right.T


def operator(known: torch.Tensor) -> Operator:
    return Operator((known.shape[0], known.shape[1]), lambda v: known @ v, lambda v: known.T @ v)


def test_a_decomposition_finds_the_largest_directions() -> None:
    known = matrix([9.0, 5.0, 3.0, 1.0, 0.5, 0.2])
    left, values, right = decompose(operator(known), 3, torch.Generator().manual_seed(0))
    assert values.tolist() == pytest.approx([9.0, 5.0, 3.0], rel=1e-4)
    for side in (left, right):
        torch.testing.assert_close(side.T @ side, torch.eye(3), atol=1e-4, rtol=0)
    best = matrix([9.0, 5.0, 3.0, 0.0, 0.0, 0.0])
    torch.testing.assert_close((left * values) @ right.T, best, atol=1e-3, rtol=0)


def test_a_slow_decline_is_met_within_a_per_cent() -> None:
    known = matrix(torch.linspace(10.0, 1.0, 30).tolist())
    exact = torch.linalg.svdvals(known)[:5]
    _, values, _ = decompose(operator(known), 5, torch.Generator().manual_seed(0))
    assert (values / exact).tolist() == pytest.approx([1.0] * 5, rel=0.01)


@pytest.mark.parametrize("shrink", [0.0, 0.5])
def test_a_start_from_data_is_where_least_squares_with_a_ridge_end(shrink: float) -> None:
    """(X - P Q') Q = t P, of vectors that have been scaled back by the calibration."""
    train = small_split().train
    taken = interaction_matrix(train).toarray()
    start = start_from_data(train, 6, shrink, Rng(0))
    least = np.linalg.svd(taken, compute_uv=False)[5]
    product = start.users @ start.items.T
    scale = np.linalg.norm(product, 2) / (np.linalg.norm(taken, 2) - shrink * least)
    P, Q = start.users / np.sqrt(scale), start.items / np.sqrt(scale)
    np.testing.assert_allclose((taken - P @ Q.T) @ Q, shrink * least * P, atol=0.05)
