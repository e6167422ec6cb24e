"""Sorting that is fused with what it is for: the best of each row, and transport on the line.

Compiled by numba where it is installed; callers have a version in plain torch for where it is not.
"""

import torch
from torch import Tensor

from towpath.kernels.available import AVAILABLE
from towpath.kernels.threads import run

# Up to so many of the best are kept in order as they come, more are counted and sorted.
_FEW = 64


def usable(*tensors: Tensor) -> bool:
    """Whether the kernels take these: numba is there, and all are float32 on the CPU, without gradients."""
    return AVAILABLE and all(
        t.device.type == "cpu" and t.dtype == torch.float32 and not t.requires_grad for t in tensors
    )


def best_of_rows(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest scores of each row of (b, n), best first, and their columns: (b, k) each.

    Among equal scores the lower column comes first.
    """
    from towpath.kernels import compiled

    values, columns = torch.empty(len(scores), k), torch.empty(len(scores), k, dtype=torch.long)
    arrays = (t.numpy() for t in (scores.contiguous(), values, columns))
    loop = compiled.few_best_of_rows if k <= _FEW else compiled.best_of_rows
    run(loop, 16 * scores.numel(), *arrays)
    return values, columns


def line_potential(points: Tensor, masses: Tensor) -> tuple[Tensor, Tensor, Tensor, float]:
    """The points in ascending order, the potential there and at each point as they came, and the distance.

    masses: those of x less those of y, all (n,). The potential is the integral from a point to infinity of
    sign(F_x - F_y), the distance that of |F_x - F_y|.
    """
    from towpath.kernels import compiled

    knots, values, at_points = (torch.empty_like(points) for _ in range(3))
    arrays = (t.numpy() for t in (points.contiguous(), masses.contiguous(), knots, values, at_points))
    distance = compiled.line_potential(*arrays)
    return knots, values, at_points, distance
