"""Vectors for a factorisation without training: the best low-rank copy of the data or of EASE, as logits."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.data.negatives import NegativeSampler
from towpath.models.ease import interaction_matrix, refuse_large_catalogue, solve_ease
from towpath.rng import Rng

if TYPE_CHECKING:
    from scipy import sparse

# Pairs that the two numbers of the logistic curve are fitted to.
_CALIBRATION_PAIRS = 50_000
# Of the random decomposition: directions beyond those asked for, and how often they are sharpened.
_SPARE, _ROUNDS = 10, 5


@dataclass(frozen=True)
class ClosedStart:
    """User vectors (users, d), item vectors (items, d) and one bias; inner products plus bias are logits."""

    users: NDArray[np.float32]
    items: NDArray[np.float32]
    bias: float


def start_from_ease(train: Interactions, dim: int, ridge: float, rng: Rng) -> ClosedStart:
    """The rank-d matrix nearest to EASE's scores X B, scaled and shifted to the log-odds of an interaction.

        X B ~ U S V',   p = sqrt(a S) U,   q = sqrt(a S) V,   logit = <p, q> + b

    a > 0 and b minimise the logistic loss on positives and as many sampled negatives each; they do not change
    a ranking. X B is never formed: the decomposition needs only its products with vectors.
    """
    refuse_large_catalogue(train.n_items)
    interacted = interaction_matrix(train)
    times, back = _products(interacted)
    weights = torch.from_numpy(solve_ease(interacted, ridge))
    scores = Operator(interacted.shape, lambda v: times(weights @ v), lambda v: weights.T @ back(v))
    return _low_rank(scores, train, dim, rng)


def start_from_data(train: Interactions, dim: int, shrink: float, rng: Rng) -> ClosedStart:
    """The same for the matrix X of what was interacted with itself, every direction weakened alike.

        X ~ U S V',   p = sqrt(a (S - t)) U,   q = sqrt(a (S - t)) V,   logit = <p, q> + b,   t = shrink * S_d

    This is where alternating least squares with a ridge of t end: the minimum of |X - P Q'|^2 + t (|P|^2 +
    |Q|^2). Without a ridge, shrink = 0, it is PureSVD.
    """
    interacted = interaction_matrix(train)
    return _low_rank(Operator(interacted.shape, *_products(interacted)), train, dim, rng, shrink)


@dataclass(frozen=True)
class Operator:
    """A matrix that is known by its products: with (columns, k) from the right, and transposed."""

    shape: tuple[int, int]
    times: Callable[[Tensor], Tensor]
    back: Callable[[Tensor], Tensor]


def decompose(matrix: Operator, rank: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """U (m, rank), S (rank,), V (n, rank) of the nearest matrix of this rank, but for a little.

    Random directions, sharpened by powers of the matrix (Halko, Martinsson and Tropp, 2011): a few products
    with many vectors at once, where exact methods need hundreds with one.
    """
    width = min(rank + _SPARE, *matrix.shape)
    basis = matrix.times(torch.randn(matrix.shape[1], width, generator=generator))
    for _ in range(_ROUNDS):
        basis = matrix.times(torch.linalg.qr(matrix.back(torch.linalg.qr(basis).Q)).Q)
    basis = torch.linalg.qr(basis).Q
    right, values, left = torch.linalg.svd(matrix.back(basis), full_matrices=False)
    return basis @ left.T[:, :rank], values[:rank], right[:, :rank]


def _products(matrix: "sparse.csr_matrix") -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """Products with the matrix and with its transpose, both stored by rows: that is what is fast."""
    there, back = (_to_torch(m) for m in (matrix, matrix.T.tocsr()))
    return lambda v: there @ v, lambda v: back @ v


def _to_torch(matrix: "sparse.csr_matrix") -> Tensor:
    starts, columns = (torch.from_numpy(a.astype(np.int64)) for a in (matrix.indptr, matrix.indices))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            starts, columns, torch.from_numpy(matrix.data), matrix.shape, check_invariants=True
        )


def _low_rank(scores: Operator, train: Interactions, dim: int, rng: Rng, shrink: float = 0.0) -> ClosedStart:
    """The rank-d matrix nearest to these scores (users, items), as the logits of a factorisation.

    Its singular values are lowered by `shrink` times the least of them.
    """
    rank = min(dim, min(scores.shape) - 1)
    left, values, right = decompose(scores, rank, rng.torch("initialise", "decomposition"))
    values = values - shrink * values[-1]
    users, items = (_widened((side * values.sqrt()).numpy(), dim) for side in (left, right))
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
    from scipy import optimize, special

    def loss(line: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        # The scale as an exponential, so that it stays positive and the order of the scores is kept.
        logit = np.exp(line[0]) * x + line[1]
        chance = special.expit(logit)
        # log(1 + e^s) = s - log(sigmoid(s)), from the one exponential that was interacted.
        value = np.mean((1 - label) * logit - np.log(np.maximum(chance, np.finfo(np.float64).tiny)))
        slope = np.array([np.mean((chance - label) * x) * np.exp(line[0]), np.mean(chance - label)])
        return float(value), slope

    found = optimize.minimize(loss, np.zeros(2), jac=True, method="BFGS").x
    return float(np.exp(found[0])), float(found[1])
