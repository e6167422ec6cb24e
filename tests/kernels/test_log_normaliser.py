import pytest
import torch
from torch import Tensor

from towpath.kernels.log_normaliser import weighted_log_normaliser
from towpath.rng import Rng


def example(rows: int = 7, items: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    generator = Rng(0).torch("example")
    states, table = (
        torch.randn(n, 3, generator=generator, dtype=torch.float64).requires_grad_() for n in (rows, items)
    )
    return states, table, torch.rand(rows, generator=generator, dtype=torch.float64)


def plain(states: Tensor, table: Tensor, weights: Tensor) -> Tensor:
    return weights @ (states @ table.T).logsumexp(1)


@pytest.mark.parametrize("buffer_bytes", [1, 2 * 5 * 8, 3 * 5 * 8, 10**6])
def test_value_and_gradients_equal_the_plain_ones_whatever_the_chunk(buffer_bytes: int) -> None:
    states, table, weights = example()
    fused = weighted_log_normaliser(states, table, weights, buffer_bytes=buffer_bytes)
    expected = plain(states, table, weights)
    torch.testing.assert_close(fused, expected)
    for found, wanted in zip(
        torch.autograd.grad(3 * fused, [states, table]),
        torch.autograd.grad(3 * expected, [states, table]),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


def test_gradients_are_those_of_the_value() -> None:
    states, table, weights = example()
    assert torch.autograd.gradcheck(
        lambda s, t: weighted_log_normaliser(s, t, weights, buffer_bytes=80), (states, table)
    )


def test_products_in_bfloat16_are_rounded_and_nothing_else() -> None:
    generator = Rng(1).torch("autocast")
    states, table = (torch.randn(n, 16, generator=generator).requires_grad_() for n in (90, 300))
    weights = torch.full((90,), 1 / 90)
    exact = weighted_log_normaliser(states, table, weights)
    rounded = weighted_log_normaliser(states, table, weights, product_dtype=torch.bfloat16)
    assert rounded.dtype == torch.float32
    assert 0 < (rounded - exact).abs().item() < 0.01
    for found, wanted in zip(
        torch.autograd.grad(rounded, [states, table]),
        torch.autograd.grad(exact, [states, table]),
        strict=True,
    ):
        assert found.dtype == torch.float32
        assert ((found - wanted).norm() / wanted.norm()).item() < 0.02


def test_far_out_logits_stay_finite() -> None:
    states = torch.tensor([[1e3], [-1e3]], requires_grad=True)
    table = torch.tensor([[1.0], [2.0]], requires_grad=True)
    value = weighted_log_normaliser(states, table, torch.ones(2))
    assert value.item() == pytest.approx(2000 - 1000)
    assert all(torch.isfinite(g).all() for g in torch.autograd.grad(value, [states, table]))


def test_no_more_logits_are_held_than_the_buffer_takes() -> None:
    """The largest tensor that torch allocates on the way is the buffer, not (rows, items)."""
    rows, items, bound = 4_000, 1_000, 2**16
    states = torch.zeros(rows, 2, requires_grad=True)
    table = torch.zeros(items, 2, requires_grad=True)
    with torch.profiler.profile(profile_memory=True) as profile:
        weighted_log_normaliser(states, table, torch.ones(rows), buffer_bytes=bound).backward()
    largest = max(event.self_cpu_memory_usage for event in profile.events())
    assert largest <= max(bound, states.numel() * 4)
    assert bound < rows * items * 4 / 100
