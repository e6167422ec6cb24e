import math

import pytest
import torch

from towpath.kernels import lazy_adam, threads
from towpath.kernels.lazy_adam import Rates, move_rows

pytest.importorskip("numba", reason="the compiled kernels need the extra `fast`")


def gradient(number: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(number)
    rows = torch.randperm(50, generator=rng)[:20]
    values = torch.randn(20, 7, generator=rng)
    return torch.sparse_coo_tensor(rows[None], values, (50, 7), check_invariants=True).coalesce()


def moved(steps: int) -> tuple[torch.Tensor, ...]:
    table, means, squares = torch.ones(50, 7), torch.zeros(50, 7), torch.zeros(50, 7)
    for number in range(1, steps + 1):
        rate = 0.01 * math.sqrt(1 - 0.999**number) / (1 - 0.9**number)
        move_rows(table, gradient(number), means, squares, Rates(0.1, 0.001, rate, 1e-8))
    return table, means, squares


@pytest.mark.parametrize("compiled", [True, False])
def test_the_step_is_that_of_sparse_adam(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_adam, "usable", lambda *tables: compiled)
    table = torch.nn.Parameter(torch.ones(50, 7))
    theirs = torch.optim.SparseAdam([table], lr=0.01)
    for number in range(1, 6):
        table.grad = gradient(number)
        theirs.step()
    ours, means, squares = moved(5)
    torch.testing.assert_close(ours, table.detach())
    torch.testing.assert_close(means, theirs.state[table]["exp_avg"])
    torch.testing.assert_close(squares, theirs.state[table]["exp_avg_sq"])


def test_rows_without_a_gradient_stay_as_they_are() -> None:
    table = moved(1)[0]
    still = torch.ones(50, dtype=torch.bool)
    still[gradient(1).indices()[0]] = False
    assert (table[still] == 1).all()
    assert (table[~still] != 1).all()


def test_the_floats_are_the_same_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)
    before, found = torch.get_num_threads(), []
    for number in (1, 2, 3):
        torch.set_num_threads(number)
        found.append(moved(3))
    torch.set_num_threads(before)
    for one, two, three in zip(*found, strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one, three)
