import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.kernels import ordering, threads
from towpath.kernels.ordering import best_of_rows, line_potential, usable
from towpath.ranking.top_k import top_k_in_torch
from towpath.transport.line import potential_in_torch

pytest.importorskip("numba", reason="the compiled kernels need the extra `fast`")

# Few values, so that there are ties; both zeros, both infinities and the smallest numbers.
NUMBERS = st.sampled_from(
    [0.0, -0.0, 1.0, 1.5, -1.0, -7.25, 1e-45, -1e-45, 3e38, float("-inf"), float("inf")]
)


def made(rows: int, width: int) -> torch.Tensor:
    scores = torch.randn(rows, width, generator=torch.Generator().manual_seed(0)) * 2 - 1
    scores[:, ::17] = float("-inf")
    return scores


@settings(deadline=None)  # the first call compiles
@given(st.lists(NUMBERS, min_size=1, max_size=40), st.data())
def test_the_best_of_a_row_are_those_of_plain_torch_ties_included(
    row: list[float], data: st.DataObject
) -> None:
    scores, k = torch.tensor([row, row[::-1]]), data.draw(st.integers(1, len(row)))
    theirs = [found.tolist() for found in top_k_in_torch(scores, k)]
    for few in (0, 64):  # both ways to find them
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ordering, "_FEW", few)
            assert [found.tolist() for found in best_of_rows(scores, k)] == theirs


@pytest.mark.parametrize("k", [1, 10, 64, 65, 500, 2_000])
def test_the_best_of_long_rows_are_those_of_plain_torch(k: int) -> None:
    scores = made(20, 2_000)
    for ours, theirs in zip(best_of_rows(scores, k), top_k_in_torch(scores, k), strict=True):
        assert torch.equal(ours, theirs)


def test_rows_that_are_views_are_taken_as_they_look() -> None:
    scores = made(20, 30)
    for view in (scores.T, scores[:, ::2], scores[3:]):
        assert torch.equal(best_of_rows(view, 5)[1], top_k_in_torch(view, 5)[1])


def test_the_lists_are_the_same_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)
    scores, before, found = made(50, 300), torch.get_num_threads(), []
    for number in (1, 2, 3):
        torch.set_num_threads(number)
        found.append(best_of_rows(scores, 20))
    torch.set_num_threads(before)
    for values, columns in found[1:]:
        assert torch.equal(values, found[0][0])
        assert torch.equal(columns, found[0][1])


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 3), (4_000, 90)])
def test_the_potential_on_the_line_is_that_of_plain_torch(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    points = torch.from_numpy(rng.normal(size=n + m).astype(np.float32))
    points[:n:3] = points[0]  # ties
    masses = np.concatenate([rng.dirichlet(np.ones(n)), -rng.dirichlet(np.ones(m))]).astype(np.float32)
    masses = torch.from_numpy(masses)
    knots, values, at_points, distance = line_potential(points, masses)
    theirs = potential_in_torch(points, masses)
    assert torch.equal(knots, theirs[0])
    for ours, plain in zip((values, at_points), theirs[1:3], strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-5)
    assert distance == pytest.approx(float(theirs[3]), rel=1e-4)


def test_other_types_and_gradients_are_left_to_torch() -> None:
    assert usable(torch.zeros(1))
    assert not usable(torch.zeros(1), torch.zeros(1, dtype=torch.float64))
    assert not usable(torch.zeros(1, requires_grad=True))
