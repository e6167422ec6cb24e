"""Vectors for a factorisation without training: the best low-rank copy of the data or of EASE, as logits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, special
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
    return _low_rank(scores, train, dim, rng)


def start_from_data(train: Interactions, dim: int, rng: Rng) -> ClosedStart:
    """The same for the matrix X of what was taken itself (PureSVD): where alternating least squares end.

    X ~ U S V',   p = sqrt(a S) U,   q = sqrt(a S) V,   logit = <p, q> + b
    """
    return _low_rank(taken_matrix(train), train, dim, rng)


def _low_rank(
    scores: LinearOperator | sparse.csr_matrix, train: Interactions, dim: int, rng: Rng
) -> ClosedStart:
    """The rank-d matrix nearest to these scores (users, items), as the logits of a factorisation."""
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
    product = np.concatenate(
        [np.einsum("nd,nd->n", users[who], items[i]) for i in (train.items[rows], other)]
    )
    return _logistic_line(product.astype(np.float64), np.repeat([1.0, 0.0], len(who)))


def _logistic_line(x: NDArray[np.float64], label: NDArray[np.float64]) -> tuple[float, float]:
    """Scale > 0 and shift of x (n,) under which the logistic loss of these labels is smallest."""

    def loss(line: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        # The scale as an exponential, so that it stays positive and the order of the scores is kept.
        logit = np.exp(line[0]) * x + line[1]
        chance = special.expit(logit)
        # log(1 + e^s) = s - log(sigmoid(s)), from the one exponential that was taken.
        value = np.mean((1 - label) * logit - np.log(np.maximum(chance, np.finfo(np.float64).tiny)))
        slope = np.array([np.mean((chance - label) * x) * np.exp(line[0]), np.mean(chance - label)])
        return float(value), slope

    found = optimize.minimize(loss, np.zeros(2), jac=True, method="BFGS").x
    return float(np.exp(found[0])), float(found[1])
