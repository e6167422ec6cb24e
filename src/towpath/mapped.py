"""Large arrays in temporary files that are mapped into memory.

The system keeps in memory what is being used of them and writes the rest back when memory is short. So a
process may work on more events than it has memory for.
"""

import math
import tempfile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# Arrays of more numbers than this lie in files.
MAPPED_FROM = 1 << 24
# How many rows of a column are worked on at a time where a step needs more room than the column itself.
CHUNK_ROWS = 1 << 22


def empty_array(shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """An array to fill: in memory, or of a temporary file that is gone when nothing refers to it."""
    if math.prod(shape) < MAPPED_FROM:
        return np.empty(shape, kind)
    with tempfile.TemporaryFile(prefix="towpath-") as file:
        return np.memmap(file, kind, "w+", shape=shape).view(np.ndarray)


def chunks(rows: int) -> list[slice]:
    """The rows in runs of CHUNK_ROWS."""
    return [slice(start, start + CHUNK_ROWS) for start in range(0, rows, CHUNK_ROWS)]


def count_codes(codes: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    """How often each code below `size` occurs: (size,). numpy's own would make a copy of all codes."""
    counts = np.zeros(size, dtype=np.int64)
    for some in chunks(len(codes)):
        counts += np.bincount(codes[some], minlength=size)
    return counts
