"""A step of Adam for the rows of a batch alone, in place: what torch's SparseAdam does.

Compiled by numba where it is installed, many times faster; plain torch otherwise.
"""

from typing import NamedTuple

import numpy as np
from torch import Tensor

from towpath.kernels.inner_products import arrays, usable
from towpath.kernels.threads import run

# Above this many rows of a table, touching only those of a batch is cheaper than stepping all of them.
SPARSE_FROM_ROWS = 30_000


class Rates(NamedTuple):
    """How fast the moments and the rows follow."""

    mean: float  # 1 - beta1
    square: float  # 1 - beta2
    step: float  # learning rate, corrected for the moments' start at zero
    epsilon: float


def move_rows(table: Tensor, gradient: Tensor, means: Tensor, squares: Tensor, rates: Rates) -> None:
    """Move the rows that a coalesced sparse gradient holds, and their moments; all others stay as they are.

    m += mean (g - m),   v += square (g^2 - v),   p -= step * m / (sqrt(v) + epsilon)
    """
    rows, values = gradient.indices()[0], gradient.values().contiguous()
    if not usable(table, table):
        mean = means[rows].lerp_(values, rates.mean)
        square = squares[rows].lerp_(values.square(), rates.square)
        means[rows], squares[rows] = mean, square
        table[rows] -= rates.step * mean / (square.sqrt() + rates.epsilon)
        return
    from towpath.kernels import compiled

    tensors = arrays(table, means, squares, rows, values)
    # As float32 like everything else: double rates would make the whole loop run in double precision.
    run(compiled.adam_rows, 4 * values.numel(), *tensors, tuple(np.float32(rate) for rate in rates))
