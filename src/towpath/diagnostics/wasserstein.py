"""The exact Wasserstein-1 distance between two weightings, and what a critic makes of it.

By linear programming for weights on common points, and by assignment for two samples of one size. Both are in
scipy; a dedicated solver would be faster, but a sample of a thousand takes a second.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog
from scipy.spatial.distance import cdist

from towpath.errors import DataError

Values = NDArray[np.float64]


def wasserstein(first: Values, second: Values, distances: Values) -> float:
    """The least cost of carrying the mass `first` to `second`, both (n,), at these distances (n, n).

    What both have in one place stays there, so that only the surplus is carried. Both must have one total.
    """
    if not np.isclose(first.sum(), second.sum(), rtol=1e-9):
        raise DataError(
            f"Two weightings can be carried into each other only if their totals agree; they are "
            f"{first.sum():.6g} and {second.sum():.6g}. Normalise both."
        )
    gap = first - second
    sources, sinks = np.flatnonzero(gap > 0), np.flatnonzero(gap < 0)
    if len(sources) == 0 or len(sinks) == 0:
        return 0.0
    supply = gap[sources]
    demand = -gap[sinks] * (supply.sum() / -gap[sinks].sum())  # rounding must not make it infeasible
    rows = sparse.kron(sparse.eye_array(len(sources)), np.ones((1, len(sinks))))
    columns = sparse.kron(np.ones((1, len(sources))), sparse.eye_array(len(sinks)))
    found = linprog(  # type: ignore[call-overload]  # HiGHS takes sparse constraints, the stubs do not know
        distances[np.ix_(sources, sinks)].ravel(),
        A_eq=sparse.vstack([rows, columns]).tocsc(),
        b_eq=np.concatenate([supply, demand]),
        method="highs",
    )
    if not found.success:
        raise DataError(f"The distance could not be computed ({found.message}); take a smaller sample.")
    return float(found.fun)


def sample_wasserstein(first: Values, second: Values) -> float:
    """The distance between two samples of one size, (m, d) each, every row counting the same.

    Too large for the distributions behind them by about m^(-1/d): hold it against the distance between two
    samples of one of them.
    """
    if first.shape != second.shape:
        raise DataError(f"Two samples of one shape are needed; these have {first.shape} and {second.shape}.")
    costs = cdist(first, second)
    return float(costs[linear_sum_assignment(costs)].mean())


def critic_distance(values: Values, first: Values, second: Values, distances: Values) -> float:
    """What a critic g says the distance is: (sum first g - sum second g) / L, never above the exact one.

    values: (n,) of g at the points. L is its largest slope between any two of them.
    """
    apart = distances > 0
    slope = (np.abs(values[:, None] - values)[apart] / distances[apart]).max(initial=0.0)
    return float((first - second) @ values / slope) if slope > 0 else 0.0
