"""Rows assignment at random into batches: which row goes where, and columns in that order.

Every way to part the rows into batches of these sizes is equally likely, and within a batch the rows keep
their order. That is all a shuffle is wanted for, at a fraction of its cost: a shuffle jumps about in memory,
and its batches would have to be sorted again before neighbouring rows are looked up together.

Compiled by numba where it is installed; without it numpy does the same, several times slower.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from towpath.kernels.available import AVAILABLE
from towpath.mapped import chunks, count_codes, empty_array

Value = TypeVar("Value", bound=np.generic)  # of a column
# Rows that are drawn at once while batches are evened out.
_DRAWN = 4096


@dataclass(frozen=True)
class BatchAssignment:
    """batches: (n,) the batch of each row; all are of `size`, the last one may be smaller."""

    batches: NDArray[np.int32]
    size: int

    def column(self, values: NDArray[Value]) -> NDArray[Value]:
        """The values (n,) of the rows, batch after batch."""
        if not AVAILABLE:
            return self.column_plainly(values)
        from towpath.kernels import compiled

        assignment = empty_array(values.shape, values.dtype)
        compiled.gather_assigned(self.batches, self.size, values, assignment)
        return assignment

    def column_plainly(self, values: NDArray[Value]) -> NDArray[Value]:
        """The same by numpy."""
        return values[np.argsort(self.batches, kind="stable")]


def assign_batches(rows: int, size: int, rng: np.random.Generator) -> BatchAssignment:
    """Give each row a batch.

    Rows first choose by themselves, batches in proportion to their size. Then rows that are drawn at random
    leave a batch that has too many, each for the first one that has too few.
    """
    batches = empty_array((rows,), np.int32)
    for some in chunks(rows):  # what is drawn does not depend on the chunks
        batches[some] = rng.integers(rows, size=len(batches[some]), dtype=np.int32) // np.int32(size)
    counts = count_codes(batches, -(-rows // size))
    missing = np.full(len(counts), size) - counts
    missing[-1] -= len(counts) * size - rows
    while (missing < 0).any():
        drawn = rng.integers(rows, size=_DRAWN)
        if AVAILABLE:
            from towpath.kernels import compiled

            compiled.even_out(batches, missing, drawn)
        else:
            even_out_plainly(batches, missing, drawn)
    return BatchAssignment(batches, size)


def even_out_plainly(
    batches: NDArray[np.int32], missing: NDArray[np.int64], drawn: NDArray[np.int64]
) -> None:
    """Move those of the drawn rows that are in a batch with too many; `missing` (batches,) is kept up."""
    first = 0
    for row in drawn:
        if missing[batches[row]] < 0:
            first += int(np.argmax(missing[first:] > 0))
            missing[batches[row]] += 1
            missing[first] -= 1
            batches[row] = first
