"""Users from their items alone: by EASE's rows, by ridge regression, by their history."""

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from contracts import SCORERS
from small import small_split
from towpath.data.interactions import Histories
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.fold_in import HasFoldIn, QuadraticLoss, RidgeFoldIn, distinct_pairs
from towpath.models.scorer import Scorer, context_of
from towpath.ranking.lists import top_k_lists

SPLIT = small_split()
EVERY = torch.arange(40)[None]


def packed(*histories: list[int]) -> Histories:
    starts = np.cumsum([0, *map(len, histories)])
    return Histories(starts, np.array([i for h in histories for i in h], dtype=np.int32))


def fitted(model: str, **settings: object) -> Scorer:
    return fit(SPLIT, Recipe(model, settings={**SCORERS[model], **settings})).scorer


def scores(scorer: Scorer, users: np.ndarray, histories: Histories) -> torch.Tensor:
    with torch.no_grad():
        return scorer.score(context_of(scorer, users, histories), EVERY)


def test_who_can_fold_in() -> None:
    able = {model for model in SCORERS if isinstance(fitted(model, epochs=1), HasFoldIn)}
    assert able == {"mf", "ease", "sgns", "attention"}


@pytest.mark.parametrize("model", ["ease", "sgns", "attention"])
def test_training_histories_folded_in_score_as_their_users_do(model: str) -> None:
    scorer, histories = fitted(model, epochs=1), SPLIT.train.histories
    folded = scorer.fold_in(histories)
    users = np.arange(60)
    assert torch.allclose(scores(folded, users, histories), scores(scorer, users, histories), atol=1e-6)


def test_folding_in_shares_the_items_and_leaves_the_model_alone() -> None:
    for model in ("mf", "ease"):
        scorer = fitted(model, epochs=1)
        before = {name: tensor.clone() for name, tensor in scorer.state_dict().items()}
        folded = scorer.fold_in(packed([1, 2], [3]))
        assert folded.sizes.users == 2
        assert all(torch.equal(before[name], tensor) for name, tensor in scorer.state_dict().items())
        shared = (
            (folded.items.weight, scorer.items.weight) if model == "mf" else (folded.weights, scorer.weights)
        )
        assert shared[0].data_ptr() == shared[1].data_ptr()


def test_a_repeated_item_counts_once_and_order_does_not_matter() -> None:
    assert [t.tolist() for t in distinct_pairs(packed([5, 1, 5], [], [2]), 40)] == [[0, 0, 2], [1, 5, 2]]
    scorer = fitted("ease")
    once, twice = scores(scorer.fold_in(packed([1, 5], [5, 1, 5])), np.arange(2), packed([], []))
    assert torch.equal(once, twice)


@pytest.mark.parametrize(("negatives", "l2"), [(1, 0.0), (3, 0.002), (20, 0.0015)])
def test_the_quadratic_loss_has_the_slope_and_the_curvature_of_training_s(negatives: int, l2: float) -> None:
    """Of the logistic loss at the log-odds of a positive, and of l2 times (1 + negatives) pairs."""
    loss = QuadraticLoss(negatives, l2)
    start = torch.tensor(-np.log(negatives), requires_grad=True)
    for label, target in ((1.0, loss.target), (0.0, loss.negative_target)):
        logistic = softplus(start) - label * start
        (slope,) = torch.autograd.grad(logistic, start, create_graph=True)
        (curvature,) = (value.item() for value in torch.autograd.grad(slope, start))
        assert curvature * (start.item() - target) == pytest.approx(slope.item(), abs=1e-9)
        # curvature / 2 (score - t)^2 + l2 (1 + negatives) |p|^2, divided by curvature / 2
        assert loss.ridge == pytest.approx(l2 * (1 + negatives) * 2 / curvature)


def test_ridge_by_hand() -> None:
    """Two items with q = 1 and q = -1, no offsets, the history holds the first; one negative, l2 = 0.01.

    rest = 1 / 2, ridge = 2 * 4 * 0.01 * 2 = 0.16, targets 2 and -2. Weights 1 and 0.5:
    the sum of w (p q + c - t)^2 + 0.16 p^2 has the normal equations
    (1.5 + 0.16) p + 0.5 c = 3 and 0.5 p + 1.5 c = 1.
    """
    solved = np.linalg.solve([[1.66, 0.5], [0.5, 1.5]], [3.0, 1.0])
    fold_in = RidgeFoldIn(torch.tensor([[1.0], [-1.0]]), torch.zeros(2), QuadraticLoss(1, 0.01))
    found = fold_in.vectors(packed([0]))
    assert found[0].tolist() == pytest.approx(solved.tolist(), abs=1e-5)


def test_ridge_solves_its_own_problem() -> None:
    """The gradient of the objective, written out, is zero at the answer."""
    rng = np.random.default_rng(0)
    items, offsets = torch.from_numpy(rng.normal(size=(30, 4))), torch.from_numpy(rng.normal(size=30))
    loss = QuadraticLoss(4, 0.002)
    found = RidgeFoldIn(items, offsets, loss).vectors(packed([3, 7, 9], [0], []))
    for row, own in enumerate([[3, 7, 9], [0]]):
        answer = found[row].clone().requires_grad_()
        at = torch.tensor(own)
        weights = torch.full((30,), 4 * len(own) / 30, dtype=torch.float64).index_fill(0, at, 1.0)
        targets = torch.full((30,), loss.negative_target, dtype=torch.float64).index_fill(0, at, loss.target)
        errors = items @ answer[:-1] + answer[-1] + offsets - targets
        total = (weights * errors**2).sum() + loss.ridge * len(own) * (answer[:-1] ** 2).sum()
        (slope,) = torch.autograd.grad(total, answer)
        assert slope.abs().max() < 1e-9
    assert found[2].tolist() == [0] * 5


def test_folded_in_users_find_their_half_of_the_catalogue() -> None:
    """Users prefer items of their own parity; so do their lists, whether folded in or trained."""
    scorer, histories = (
        fitted("mf", epochs=20, patience=20, batch_size=64, learning_rate=0.02),
        SPLIT.train.histories,
    )
    users = np.arange(60)
    folded = scorer.fold_in(histories)
    shares = [
        np.mean(top_k_lists(who, users, histories, 5).items % 2 == users[:, None] % 2)
        for who in (folded, scorer)
    ]
    assert min(shares) > 0.7
    assert abs(shares[0] - shares[1]) < 0.15
