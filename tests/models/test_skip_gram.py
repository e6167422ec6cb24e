"""Skip-gram against its gradient, its optimum, and what it is for."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.nn.functional import logsigmoid

from small import small_interactions
from towpath.data.interactions import Histories, Interactions
from towpath.data.vocabulary import Vocabulary
from towpath.models.registry import build
from towpath.models.scorer import Sizes, context_of
from towpath.models.skip_gram import ItemVectors, SkipGram, _Learner, learn_item_vectors, neighbours
from towpath.rng import Rng


def histories_of(*runs: list[int]) -> Histories:
    return Histories(np.cumsum([0, *(len(run) for run in runs)]), np.concatenate([*runs]).astype(np.int32))


def interactions_of(runs: list[list[int]], items: int) -> Interactions:
    return Interactions(
        users=np.repeat(np.arange(len(runs)), [len(run) for run in runs]).astype(np.int32),
        items=np.concatenate([*runs]).astype(np.int32),
        user_ids=Vocabulary(pa.array(range(len(runs)))),
        item_ids=Vocabulary(pa.array(range(items))),
    )


def test_neighbours_stay_within_the_window_and_the_user() -> None:
    found = neighbours(histories_of([7, 8, 9], [5], [], [1, 2]), np.array([0, 1, 3, 5]), 2)
    assert found.tolist() == [[-1, -1, 8, 9], [-1, 7, 9, -1], [-1, -1, -1, -1], [-1, 1, -1, -1]]


def test_a_step_follows_the_gradient_of_the_loss() -> None:
    """Adagrad's first step is -rate * gradient / root mean square of the row's gradient."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(6, 3, generator=generator, dtype=torch.float32)
    contexts = torch.randn(6, 3, generator=generator, dtype=torch.float32)
    centres, pool = torch.tensor([0, 2, 0]), torch.tensor([1, 5, 1, 4])
    company = torch.tensor([[1, -1], [3, 0], [2, 4]])
    v, c = vectors.clone().requires_grad_(), contexts.clone().requires_grad_()
    real = (company >= 0).float()
    near = logsigmoid((v[centres][:, None] * c[company.clamp(min=0)]).sum(2)) * real
    far = logsigmoid(-v[centres] @ c[pool].T).mean(1) * 5 * real.sum(1)
    by_vectors, by_contexts = torch.autograd.grad(-(near.sum() + far.sum()), [v, c])
    learner = _Learner(ItemVectors(vectors.clone(), contexts.clone()), SkipGram(width=3, learning_rate=0.1))
    learner.step(centres, company, pool)
    for after, before, gradient in [
        (learner.found.vectors, vectors, by_vectors),
        (learner.found.contexts, contexts, by_contexts),
    ]:
        expected = before - 0.1 * gradient / (gradient.square().mean(1, keepdim=True).sqrt() + 1e-8)
        torch.testing.assert_close(after, expected)


def test_the_optimum_is_the_shifted_mutual_information() -> None:
    """sigma(<v_i, c_j>) = N_ij / (N_ij + k N_i P(j)) when the vectors are wide enough (Levy and Goldberg)."""
    draw = np.random.default_rng(0)
    runs = [list(draw.permutation(5)[:4]) for _ in range(400)]
    train = interactions_of(runs, 5)
    found = learn_item_vectors(train, SkipGram(width=5, window=1, negatives=2, epochs=80), Rng(0))
    together = np.zeros((5, 5))
    for run in runs:
        for a, b in pairwise(run):
            together[a, b] += 1
            together[b, a] += 1
    noise = train.item_counts**0.75 / (train.item_counts**0.75).sum()
    chance = 2 * together.sum(1, keepdims=True) * noise
    expected = together / (together + chance)
    learned = torch.sigmoid(found.vectors @ found.contexts.T).numpy()
    off_diagonal = ~np.eye(
        5, dtype=bool
    )  # an item is never its own neighbour: the optimum there is minus infinity
    assert np.abs(learned - expected)[off_diagonal].max() < 0.05
    assert learned[~off_diagonal].max() < 0.1


def test_items_of_the_same_taste_lie_in_the_same_direction() -> None:
    train = small_interactions(users=200)
    sgns = build("sgns", {"embedding_dim": 8}, Sizes(train.n_users, train.n_items))
    sgns.initialise(train, Rng(0))
    alike = sgns.item_similarity(torch.arange(train.n_items))
    same = torch.arange(40)[:, None] % 2 == torch.arange(40) % 2
    off = ~torch.eye(40, dtype=torch.bool)
    assert float(alike[same & off].mean()) > float(alike[~same].mean()) + 0.3


def test_users_are_their_last_items() -> None:
    """Mean of cosines, by hand; a user without items scores zero."""
    sgns = build("sgns", {"embedding_dim": 2, "history": 2}, Sizes(2, 3))
    with torch.no_grad():
        sgns.vectors[:] = torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0]])
    context = context_of(sgns, np.array([0, 1]), histories_of([2, 0, 1], []))
    half = 0.5**0.5
    expected = [[0.5, 0.5, half], [0.0, 0.0, 0.0]]
    assert sgns.score(context, torch.tensor([[0, 1, 2]])).tolist() == [
        pytest.approx(row, abs=1e-6) for row in expected
    ]


def test_another_seed_gives_another_fit() -> None:
    train = small_interactions()
    first, other = (learn_item_vectors(train, SkipGram(width=4, epochs=1), Rng(seed)) for seed in (0, 1))
    assert not torch.equal(first.vectors, other.vectors)
