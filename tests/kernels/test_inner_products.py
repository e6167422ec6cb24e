import pytest
import torch

from towpath.kernels import threads
from towpath.kernels.inner_products import inner_products, numbered, usable

pytest.importorskip("numba", reason="the compiled kernels need the extra `fast`")


def plain(
    P: torch.Tensor, Q: torch.Tensor, users: torch.Tensor, items: torch.Tensor, bias: torch.Tensor
) -> list[torch.Tensor]:
    p, q = P[users], Q[items]
    scores = (p[:, None, :-1] * q[:, :, :-1]).sum(2) + p[:, None, -1] + q[:, :, -1] + bias
    return [scores, (p[:, None, :-1].square().sum(2) + q[:, :, :-1].square().sum(2)).mean()]


@pytest.fixture(params=[(1, 1), (7, 4), (64, 3)])
def problem(request: pytest.FixtureRequest) -> tuple[torch.Tensor, ...]:
    rows, columns = request.param
    rng = torch.Generator().manual_seed(0)
    P, Q = torch.randn(9, 6, generator=rng), torch.randn(11, 6, generator=rng)
    users = torch.randint(9, (rows,), generator=rng)
    items = torch.randint(11, (rows, columns), generator=rng)
    return P.requires_grad_(), Q.requires_grad_(), users, items, torch.tensor(0.7, requires_grad=True)


def test_the_kernel_equals_plain_torch_with_gradients(problem: tuple[torch.Tensor, ...]) -> None:
    P, Q, users, items, bias = problem
    fused, reference = inner_products(P, Q, users, items, bias), plain(P, Q, users, items, bias)
    for ours, theirs in zip(fused, reference, strict=True):
        torch.testing.assert_close(ours, theirs)
    mixed = [
        (a * torch.linspace(-1, 2, a.numel()).view(a.shape)).sum() + b.square() for a, b in (fused, reference)
    ]
    for ours, theirs in zip(*(torch.autograd.grad(m, [P, Q, bias]) for m in mixed), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_kernel_gives_the_same_floats_every_time(problem: tuple[torch.Tensor, ...]) -> None:
    P, Q, users, items, bias = problem
    first, again = (
        torch.autograd.grad(inner_products(P, Q, users, items, bias)[0].square().sum(), P) for _ in range(2)
    )
    assert torch.equal(first[0], again[0])


def test_only_float32_on_the_cpu_is_taken() -> None:
    assert usable(torch.zeros(1), torch.zeros(1))
    assert not usable(torch.zeros(1), torch.zeros(1, dtype=torch.float64))


def test_the_floats_are_the_same_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)  # share out even this little
    rng = torch.Generator().manual_seed(1)
    P, Q = torch.randn(300, 6, generator=rng), torch.randn(200, 6, generator=rng)
    users, items = torch.randint(300, (500,), generator=rng), torch.randint(200, (500, 3), generator=rng)
    before, found = torch.get_num_threads(), []
    for number in (1, 2, 3):
        torch.set_num_threads(number)
        tables = [P.clone().requires_grad_(), Q.clone().requires_grad_()]
        scores, norm = inner_products(*tables, users, items, torch.zeros(()))
        gradients = torch.autograd.grad(scores.square().sum() + 0.1 * norm.square(), tables)
        found.append([scores, norm, *gradients])
    torch.set_num_threads(before)
    for ours, other in zip(found[0] * 2, found[1] + found[2], strict=True):
        assert torch.equal(ours, other)


def test_sparse_gradients_are_the_rows_of_dense_ones(problem: tuple[torch.Tensor, ...]) -> None:
    P, Q, users, items, bias = problem
    found = []
    for sparse in (False, True):
        scores, norm = inner_products(P, Q, users, items, bias, sparse=(sparse, sparse))
        found.append(torch.autograd.grad(scores.square().sum() + norm, [P, Q]))
    for dense, few, codes in zip(*found, (users, items), strict=True):
        assert few.is_sparse
        assert sorted(few.indices()[0].tolist()) == codes.unique().tolist()
        assert torch.equal(few.to_dense(), dense)


def test_codes_are_numbered_as_they_first_occur() -> None:
    codes = torch.randint(10**12, (5_000,), generator=torch.Generator().manual_seed(0))
    codes = codes[torch.arange(5_000) // 2].view(-1, 5)
    rows, places = numbered(codes)
    assert torch.equal(rows[places], codes)
    assert len(rows) == len(codes.unique())
    assert places.flatten()[:4].tolist() == [0, 0, 1, 1]
