import pytest
import torch

from towpath.models.closed_start import Operator, decompose


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
