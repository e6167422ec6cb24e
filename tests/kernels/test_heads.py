import numpy as np
import pytest
import torch

from towpath.kernels import heads
from towpath.kernels.heads import BlockTask, HeadTask, MemberTask, Tables, head_gradients, head_risk

USERS, ITEMS, MEMBERS, DIM, HEADS = 7, 9, 3, 4, 3


def problem(dim: int = DIM) -> tuple[Tables, HeadTask, MemberTask]:
    rng = np.random.default_rng(0)
    width = MEMBERS * (dim + HEADS)

    def floats(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))

    tables = Tables(floats(USERS, width), floats(ITEMS, width), floats(HEADS, MEMBERS))
    weights = torch.from_numpy(rng.integers(0, 3, (11, 4, HEADS)).astype(np.float32))
    task = HeadTask(
        torch.from_numpy(rng.integers(0, USERS, 11)),
        torch.from_numpy(rng.integers(0, ITEMS, (11, 4))),
        torch.from_numpy(rng.integers(0, 2, (11, 4, HEADS)).astype(np.float32)),
        weights,
    )
    prices = torch.tensor([[1.0, 0.3, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    return tables, task, MemberTask(prices.T.contiguous(), torch.tensor([0.1, 0.5, 0.2]))


@pytest.mark.parametrize("dim", [DIM, 1, 8, 19])  # less than eight, eight, and more
def test_the_compiled_loop_gives_the_gradients_of_the_risk(dim: int) -> None:
    tables, task, members = problem(dim)
    found = head_gradients(tables, task, members, (False, False))
    own = Tables(*(t.clone().requires_grad_() for t in tables))
    wanted = torch.autograd.grad(head_risk(own, task, members), own)
    for ours, true in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, true, rtol=1e-4, atol=1e-5)
    assert found[0][:, 2 * dim : 3 * dim].abs().max() == 0  # a member that minimises nothing rests


def block_of(users: int) -> BlockTask:
    """The first users against four items, which count for the first and the last head."""
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, (4, HEADS, users)).astype(np.float32)
    weights[:, 1] = 0
    return BlockTask(torch.arange(users), torch.tensor([8, 0, 3, 5]), torch.from_numpy(weights))


@pytest.mark.parametrize("dim", [DIM, 6, 1, 8, 19])
@pytest.mark.parametrize("users", [3, 300])  # less than fills a register, and more than are done at once
def test_the_compiled_loop_over_a_block_gives_the_gradients_of_its_pairs(users: int, dim: int) -> None:
    _, task, members = problem()
    draw, width = torch.Generator().manual_seed(0), MEMBERS * (dim + HEADS)
    rows = (torch.randn(n, width, generator=draw) for n in (max(users, USERS), ITEMS))
    tables, block = Tables(*rows, torch.randn(HEADS, MEMBERS, generator=draw)), block_of(users)
    found = head_gradients(tables, task, members, (False, False), block)
    own = Tables(*(t.clone().requires_grad_() for t in tables))
    risk = head_risk(own, task, members) + head_risk(own, block.pairs(), members)
    for ours, true in zip(found, torch.autograd.grad(risk, own), strict=True):
        torch.testing.assert_close(ours, true, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("compiled", [True, False])
def test_sparse_gradients_are_the_dense_ones(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    tables, task, members = problem()
    block = block_of(3)
    dense = head_gradients(tables, task, members, (False, False), block)
    if not compiled:
        monkeypatch.setattr(heads, "usable", lambda users, items: False)
    users, items, bias = head_gradients(tables, task, members, (True, True), block)
    assert users.is_sparse
    assert items.is_sparse
    assert set(users.coalesce().indices()[0].tolist()) <= {*task.users.tolist(), *range(3)}
    for ours, true in zip((users.to_dense(), items.to_dense(), bias), dense, strict=True):
        torch.testing.assert_close(ours, true, rtol=1e-4, atol=1e-5)


def test_the_risk_by_hand() -> None:
    # One pair, one member, one head: vectors 2 and 3, biases 1, 0 and -1, so a logit of 6 and lengths 4 + 9.
    tables = Tables(torch.tensor([[2.0, 1.0]]), torch.tensor([[3.0, 0.0]]), torch.tensor([[-1.0]]))
    task = HeadTask(torch.tensor([0]), torch.tensor([[0]]), torch.tensor([[[1.0]]]), torch.tensor([[[2.0]]]))
    members = MemberTask(torch.tensor([[0.5]]), torch.tensor([0.1]))
    wanted = 2.0 * 0.5 * (np.log1p(np.exp(-6.0)) + 0.1 * 13)
    assert head_risk(tables, task, members).item() == pytest.approx(wanted, rel=1e-5)
