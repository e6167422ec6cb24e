"""What ratings tell about taste and about exposure: two small factorisations."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.models.factorization import Factorization, FactorizationSettings
from towpath.models.registry import parse_settings
from towpath.models.scorer import Context, sizes_of
from towpath.rng import Rng
from towpath.training.optimiser import Optimiser
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

# Factorisations to simulate from, not to be evaluated: good enough and quick.
_EPOCHS = 6
# Rows of a step: a hundred steps an epoch where there are enough rows for that, or too many.
_BATCHES, _SMALLEST, _LARGEST = 100, 64, 8192
_LEARNING_RATE = 0.01
_L2 = 0.01
# Rows of the prediction made at once.
_BLOCK = 512


def predict_ratings(rated: Interactions, dim: int, rng: Rng) -> NDArray[np.float32]:
    """A rating for every pair, (users, items), by factorisation of those that were given.

        minimise  mean (rating - score(u, i))^2  +  l2 * mean (|p_u|^2 + |q_i|^2)

    Ratings must be finite. What comes out stays within their range.
    """
    ratings = torch.from_numpy(np.asarray(rated.values, dtype=np.float32))
    scorer = _factorization(rated, dim, rng, "ratings")
    with torch.no_grad():
        scorer.bias.fill_(float(ratings.mean()))
    users, items = (torch.from_numpy(codes.astype(np.int64)) for codes in (rated.users, rated.items))
    optimiser = Optimiser([scorer], _LEARNING_RATE)
    step = _batch_size(rated)
    for epoch in range(_EPOCHS):
        order = torch.randperm(len(rated), generator=rng.torch("world", "ratings", epoch))
        for start in range(0, len(rated), step):
            rows = order[start : start + step]
            scores, norm = scorer.score_with_norm(_context(users[rows]), items[rows, None])
            optimiser.step((scores[:, 0] - ratings[rows]).square().mean() + _L2 * norm)
    return scores_of(scorer).clip(float(ratings.min()), float(ratings.max()))


def factorise_exposure(interacted: Interactions, dim: int, rng: Rng) -> Factorization:
    """A factorisation of which pairs occur at all: one negative per positive, logistic loss."""
    scorer = _factorization(interacted, dim, rng, "exposure")
    loop = {
        "epochs": _EPOCHS,
        "batch_size": _batch_size(interacted),
        "negatives": 1,
        "learning_rate": _LEARNING_RATE,
    }
    training = parse_settings(TrainingSettings, loop)
    learner = PlainLearner(TrainingTask(scorer, interacted, training, rng))
    for epoch in range(1, _EPOCHS + 1):
        learner.run_epoch(epoch)
    return scorer


def vectors_of(scorer: Factorization) -> tuple[Tensor, Tensor]:
    """The vectors of users (users, d) and items (items, d), without their biases."""
    return scorer.users.weight.detach()[:, :-1], scorer.items.weight.detach()[:, :-1]


def _factorization(data: Interactions, dim: int, rng: Rng, name: str) -> Factorization:
    settings = parse_settings(FactorizationSettings, {"embedding_dim": dim})
    scorer = Factorization(settings, sizes_of(data))
    scorer.initialise(data, rng.child("world", name))  # both factorisations, but not from the same vectors
    return scorer


def _batch_size(data: Interactions) -> int:
    return max(_SMALLEST, min(_LARGEST, len(data) // _BATCHES))


def _context(users: Tensor) -> Context:
    return Context(users, torch.empty(len(users), 0, dtype=torch.int64))


def scores_of(scorer: Factorization) -> NDArray[np.float32]:
    """The score of every pair: (users, items)."""
    scores = np.empty((scorer.sizes.users, scorer.sizes.items), dtype=np.float32)
    items = torch.arange(scorer.sizes.items)[None, :]
    with torch.no_grad():
        for start in range(0, len(scores), _BLOCK):
            users = torch.arange(start, min(start + _BLOCK, len(scores)))
            scores[start : start + _BLOCK] = scorer.score(_context(users), items).numpy()
    return scores
