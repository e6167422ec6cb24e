"""Many small ridge regressions at once, over rows that share their vectors but weigh them differently."""

import torch
from torch import Tensor

from towpath.errors import TrainingError

# Numbers in the largest table on the way: 16 MB of float32.
_MOST_NUMBERS = 2**22


def rows_for(dim: int) -> int:
    """How many (d, d) matrices to hold at once, at least one."""
    return max(1, _MOST_NUMBERS // dim**2)


def gram_matrices(weights: Tensor, vectors: Tensor) -> Tensor:
    """The Gram matrix of the vectors under each row of weights: (b, d, d).

        G_r = sum_i w_ri v_i v_i'

    weights (b, n), vectors (n, d). One matrix product with the table of outer products, of which only the
    upper triangle is made, and only for so many vectors at a time that it stays small.
    """
    dim = vectors.shape[1]
    upper = torch.triu_indices(dim, dim, device=vectors.device)
    packed = weights.new_zeros(len(weights), upper.shape[1])
    step = max(1, _MOST_NUMBERS // upper.shape[1])
    for start in range(0, len(vectors), step):
        some = vectors[start : start + step]
        packed += weights[:, start : start + step] @ (some[:, upper[0]] * some[:, upper[1]])
    full = packed.new_empty(len(packed), dim, dim)
    full[:, upper[0], upper[1]] = packed
    full[:, upper[1], upper[0]] = packed
    return full


def ridge_solve(gram: Tensor, right: Tensor, ridge: float) -> Tensor:
    """X of (G + ridge I) x = r for every row: (b, d) in the type of `right`; gram (b, d, d), right (b, d).

    Solved in double precision: with a small ridge the matrices are nearly singular.
    """
    identity = torch.eye(gram.shape[1], dtype=torch.float64, device=gram.device)
    factor, failed = torch.linalg.cholesky_ex(gram.double() + ridge * identity)
    if failed.any():
        raise TrainingError(
            f"{int((failed > 0).sum()):,} of {len(gram):,} regressions have no unique solution within "
            f"rounding; a ridge of {ridge:g} is too small for these vectors, so raise it."
        )
    return torch.cholesky_solve(right.double()[..., None], factor)[..., 0].to(right.dtype)
