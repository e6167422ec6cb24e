"""Propensities of a log that has none: a multinomial regression of what was shown, cross-fitted."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax

from towpath.bandit.log import BanditLog

Values = NDArray[np.float64]

FOLDS = 3
NOTE = (
    "propensities were estimated from what was shown (multinomial regression, cross-fitted in 3 folds), not "
    "logged: every number here rests on that model"
)


def with_estimated_propensities(log: BanditLog) -> BanditLog:
    """The same rows, each with the chance of what it shows by a model of the rows of the other folds.

    Folds are row number mod FOLDS. The chances depend on the position and on the log's features; whatever
    else the logging policy looked at is missing, and the estimates are biased by it.
    """
    design, cells = _cells(log)
    found = np.empty(len(log))
    folds = np.arange(len(log)) % FOLDS
    for fold in range(FOLDS):
        counts = _counts(cells[folds != fold], log.actions[folds != fold], (design.shape[0], log.n_actions))
        chances = fit_chances(design, counts)
        found[folds == fold] = chances[cells[folds == fold], log.actions[folds == fold]]
    return log.with_propensities(found, NOTE)


def fit_chances(design: sparse.csr_array, counts: Values) -> Values:
    """The chance (cells, actions) of every action in every cell.

    Minimises the sum of -log softmax(design beta) over the counted actions + |beta|^2 / 2. design: (cells, p)
    features of each cell. counts: (cells, actions).
    """
    shape = (design.shape[1], counts.shape[1])
    totals = counts.sum(axis=1, keepdims=True)

    def loss(flat: Values) -> tuple[float, Values]:
        beta = flat.reshape(shape)
        logs = log_softmax(design @ beta, axis=1)
        slope = design.T @ (totals * np.exp(logs) - counts) + beta
        return float(-(counts * logs).sum() + (beta**2).sum() / 2), slope.ravel()

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(np.exp(log_softmax(design @ found.x.reshape(shape), axis=1)))


def _cells(log: BanditLog) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """The distinct combinations of position and features as one-hot rows, and which one each row is in."""
    columns = log.positions[:, None] if log.features is None else np.c_[log.positions, log.features]
    unique, cells = np.unique(columns, axis=0, return_inverse=True)
    sizes = unique.max(axis=0) + 1
    places = 1 + unique + np.concatenate([[0], np.cumsum(sizes)[:-1]])
    places = np.c_[np.zeros(len(unique), dtype=np.int64), places]  # an intercept
    starts = np.arange(0, places.size + 1, places.shape[1])
    shape = (len(unique), int(sizes.sum()) + 1)
    return sparse.csr_array((np.ones(places.size), places.ravel(), starts), shape), cells.ravel()


def _counts(cells: NDArray[np.int64], actions: NDArray[np.int64], shape: tuple[int, int]) -> Values:
    flat = np.bincount(cells * shape[1] + actions, minlength=shape[0] * shape[1])
    return flat.reshape(shape).astype(np.float64)
