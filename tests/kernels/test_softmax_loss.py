import pytest
import torch
from torch import Tensor

from towpath.kernels.softmax_loss import Candidates, Products, Seen, weighted_softmax_loss
from towpath.rng import Rng

TARGETS = torch.tensor([0, 4, 1, 1, 3, 2, 0])
# Of five items; target 2 and 4 are none of them.
SOME = Candidates(torch.tensor([0, 1, 3]), torch.tensor([0.5, 1.0, 0.25], dtype=torch.float64).log())


def example() -> tuple[Tensor, Tensor, Tensor]:
    generator = Rng(0).torch("example")
    states, table = (
        torch.randn(n, 3, generator=generator, dtype=torch.float64).requires_grad_()
        for n in (len(TARGETS), 5)
    )
    return states, table, torch.rand(len(TARGETS), generator=generator, dtype=torch.float64)


# Two sequences; the states stand at steps two to four of one and one to four of the other.
SEEN = Seen(torch.tensor([[-1, 3, 0, 3], [1, 4, 1, 2]]), torch.tensor([1, 2, 3, 4, 5, 6, 7]))
SEEN_ITEMS = [{3}, {3, 0}, {3, 0}, {1}, {1, 4}, {1, 4}, {1, 4, 2}]


def plain(
    states: Tensor, table: Tensor, weights: Tensor, candidates: Candidates | None, *, unseen: bool = False
) -> Tensor:
    """The formulas, word for word."""
    candidates = candidates or Candidates(torch.arange(5), torch.zeros(5, dtype=torch.float64))
    logits, own = states @ table.T, (states * table[TARGETS]).sum(1)
    others = (logits[:, candidates.items] - candidates.log_chances).exp()
    others = others * (candidates.items != TARGETS[:, None])
    if unseen:
        fresh = [[item not in seen for item in candidates.items.tolist()] for seen in SEEN_ITEMS]
        others = others * torch.tensor(fresh)
    return weights @ ((own.exp() + others.sum(1)).log() - own)


@pytest.mark.parametrize("candidates", [None, SOME], ids=["all items", "candidates"])
@pytest.mark.parametrize("buffer_bytes", [1, 2 * 5 * 8, 3 * 5 * 8, 10**6])
@pytest.mark.parametrize("seen", [None, SEEN], ids=["against all", "against the unseen"])
def test_value_and_gradients_equal_the_plain_ones_whatever_the_chunk(
    buffer_bytes: int, candidates: Candidates | None, seen: Seen | None
) -> None:
    states, table, weights = example()
    fused = weighted_softmax_loss(states, table, TARGETS, weights, candidates, Products(buffer_bytes), seen)
    expected = plain(states, table, weights, candidates, unseen=seen is not None)
    torch.testing.assert_close(fused, expected)
    for found, wanted in zip(
        torch.autograd.grad(3 * fused, [states, table]),
        torch.autograd.grad(3 * expected, [states, table]),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


def test_a_large_table_has_a_sparse_gradient_with_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    states, table, weights = example()
    dense = torch.autograd.grad(weighted_softmax_loss(states, table, TARGETS, weights, SOME), table)[0]
    monkeypatch.setattr("towpath.kernels.softmax_loss.SPARSE_FROM_ROWS", 4)
    sparse = torch.autograd.grad(weighted_softmax_loss(states, table, TARGETS, weights, SOME), table)[0]
    assert sparse.is_sparse
    torch.testing.assert_close(sparse.to_dense(), dense)
    whole = torch.autograd.grad(weighted_softmax_loss(states, table, TARGETS, weights), table)[0]
    assert not whole.is_sparse


@pytest.mark.parametrize("candidates", [None, SOME], ids=["all items", "candidates"])
def test_gradients_are_those_of_the_value(candidates: Candidates | None) -> None:
    states, table, weights = example()
    assert torch.autograd.gradcheck(
        lambda s, t: weighted_softmax_loss(s, t, TARGETS, weights, candidates, Products(80)), (states, table)
    )


def test_candidates_that_are_sure_to_be_all_items_give_the_whole_softmax() -> None:
    states, table, weights = example()
    everything = Candidates(torch.arange(5), torch.zeros(5, dtype=torch.float64))
    found = weighted_softmax_loss(states, table, TARGETS, weights, everything)
    torch.testing.assert_close(found, weighted_softmax_loss(states, table, TARGETS, weights))


def test_a_target_that_is_the_only_candidate_has_nothing_against_it() -> None:
    states, table, _ = example()
    only = Candidates(TARGETS[:1], torch.zeros(1, dtype=torch.float64))
    found = weighted_softmax_loss(states[:1], table, TARGETS[:1], torch.ones(1), only)
    assert found.item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("sampled", [False, True])
def test_products_in_bfloat16_are_rounded_and_nothing_else(sampled: bool) -> None:
    generator = Rng(1).torch("autocast")
    states, table = (torch.randn(n, 16, generator=generator).requires_grad_() for n in (90, 300))
    weights, targets = torch.full((90,), 1 / 90), torch.arange(90)
    candidates = Candidates(torch.arange(0, 300, 2), torch.full((150,), -0.7)) if sampled else None
    exact = weighted_softmax_loss(states, table, targets, weights, candidates)
    narrow = Products(dtype=torch.bfloat16)
    rounded = weighted_softmax_loss(states, table, targets, weights, candidates, narrow)
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
    value = weighted_softmax_loss(states, table, torch.tensor([0, 0]), torch.ones(2))
    assert value.item() == pytest.approx(1000)
    assert all(torch.isfinite(g).all() for g in torch.autograd.grad(value, [states, table]))


def test_no_more_logits_are_held_than_the_buffer_takes() -> None:
    """The largest tensor that torch allocates on the way is the buffer, not (rows, items)."""
    rows, items, bound = 4_000, 1_000, 2**16
    states = torch.zeros(rows, 2, requires_grad=True)
    table = torch.zeros(items, 2, requires_grad=True)
    targets = torch.arange(rows) % items
    with torch.profiler.profile(profile_memory=True) as profile:
        weighted_softmax_loss(states, table, targets, torch.ones(rows), products=Products(bound)).backward()
    largest = max(event.self_cpu_memory_usage for event in profile.events())
    assert largest <= max(bound, states.numel() * 4)
    assert bound < rows * items * 4 / 100
