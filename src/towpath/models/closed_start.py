"""Vectors for a factorisation without training: the best low-rank copy of EASE, as logits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special
from scipy.sparse.linalg import LinearOperator, svds

from towpath.data.interactions import Interactions
from towpath.data.negatives import NegativeSampler
from towpath.models.ease import refuse_large_catalogue, solve_ease, taken_matrix
from towpath.rng import Rng

# Pairs that the two numbers of the logistic curve are fitted to.
_CALIBRATION_PAIRS = 200_000


@dataclass(frozen=True)
class ClosedStart:
    """User vectors (users, d), item vectors (items, d) and one bias; inner products plus bias are logits."""

    users: NDArray[np.float32]
    items: NDArray[np.float32]
    bias: float


def start_from_ease(train: Interactions, dim: int, ridge: float, rng: Rng) -> ClosedStart:
    """The rank-d matrix nearest to EASE's scores X B, scaled and shifted to the log-odds of being taken.

        X B ~ U S V',   p = sqrt(a S) U,   q = sqrt(a S) V,   logit = <p, q> + b

    a > 0 and b minimise the logistic loss on positives and as many sampled negatives each; they do not change
    a ranking. X B is never formed: the decomposition needs only its products with vectors.
    """
    refuse_large_catalogue(train.n_items)
    taken = taken_matrix(train)
    weights = solve_ease(taken, ridge)
    scores = LinearOperator(
        (train.n_users, train.n_items),
        matvec=lambda v: taken @ (weights @ v),
        rmatvec=lambda v: weights.T @ (taken.T @ v),
        dtype=np.float32,
    )
    rank = min(dim, min(scores.shape) - 1)
    left, values, right = svds(scores, k=rank, rng=rng.numpy("initialise", "decomposition"))
    root = np.sqrt(values)
    users, items = _widened(left * root, dim), _widened(right.T * root, dim)
    scale, bias = _calibrate(users, items, train, rng)
    return ClosedStart(users * np.sqrt(scale), items * np.sqrt(scale), bias)


def _widened(vectors: NDArray[np.float32], dim: int) -> NDArray[np.float32]:
    """The same with zeros in the directions that the data do not have: (n, dim)."""
    return np.pad(vectors, ((0, 0), (0, dim - vectors.shape[1]))).astype(np.float32)


def _calibrate(
    users: NDArray[np.float32], items: NDArray[np.float32], train: Interactions, rng: Rng
) -> tuple[float, float]:
    """Scale and shift of <p, q> that make it the log-odds of a positive among sampled negatives."""
    generator = rng.numpy("initialise", "calibration")
    sampler = NegativeSampler(train)
    rows = generator.integers(len(train), size=_CALIBRATION_PAIRS)
    rows = rows[~np.isin(train.users[rows], sampler.exhausted)]
    who = train.users[rows].astype(np.int64)
    other = sampler.sample(who, 1, generator)[:, 0]
    product = np.concatenate([(users[who] * items[i]).sum(1) for i in (train.items[rows], other)])
    label = np.repeat([1.0, 0.0], len(who))

    def loss(line: NDArray[np.float64]) -> float:
        # The scale as an exponential, so that it stays positive and the order of the scores is kept.
        logit = np.exp(line[0]) * product + line[1]
        return float(np.mean(np.logaddexp(0, logit) - label * logit))

    def slope(line: NDArray[np.float64]) -> NDArray[np.float64]:
        logit = np.exp(line[0]) * product + line[1]
        error = special.expit(logit) - label
        return np.array([np.mean(error * product) * np.exp(line[0]), np.mean(error)])

    found = optimize.minimize(loss, np.zeros(2), jac=slope, method="BFGS").x
    return float(np.exp(found[0])), float(found[1])
