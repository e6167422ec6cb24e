"""The reward model of the direct method: a logistic regression on item and position."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import spsolve
from scipy.special import expit

from towpath.bandit.log import BanditLog
from towpath.errors import TrainingError

Values = NDArray[np.float64]

TOLERANCE = 1e-10  # largest slope of the mean loss; a looser one moves the direct method's value
_MOST_STEPS = 100


@dataclass(frozen=True)
class RewardModel:
    """Predicted rewards of every action at every position, one table a fold.

    tables: (folds, positions, actions). folds: (n,), which table each row of the log is judged by: one that
    was not fitted on it, where there is more than one.
    """

    tables: Values
    folds: NDArray[np.int64]

    def predicted(self, log: BanditLog) -> Values:
        """The predicted reward of what was shown: (n,)."""
        return self.tables[self.folds, log.positions, log.actions]


def fit_reward_model(log: BanditLog, folds: int = 1) -> RewardModel:
    """The model fitted on all rows, or for each row on the rows of the other folds (row number mod folds)."""
    rows = np.arange(len(log)) % folds
    every = np.ones(len(log), dtype=np.bool_)
    tables = [fit_reward_table(log, rows != fold if folds > 1 else every) for fold in range(folds)]
    return RewardModel(np.stack(tables), rows)


def fit_reward_table(log: BanditLog, keep: NDArray[np.bool_]) -> Values:
    """Predicted rewards (positions, actions) from the rows where `keep` is true.

    Minimises sum of log-losses + |beta|^2 / 2 over a free intercept and beta, one number for each item and
    each position (no level dropped), by Newton's method. Rewards within [0, 1] enter as they are. Items that
    were never shown keep beta = 0, so they get the intercept and the position.
    """
    shape = (log.n_positions, log.n_actions)
    cell = log.positions[keep] * log.n_actions + log.actions[keep]
    shown = np.bincount(cell, minlength=shape[0] * shape[1]).astype(np.float64)
    earned = np.bincount(cell, weights=log.rewards[keep], minlength=len(shown)).astype(np.float64)
    if earned.sum() in (0.0, shown.sum()):  # no finite optimum: the intercept would run away
        return np.full(shape, float(earned.sum() > 0))
    design = _design(*shape)
    used = np.flatnonzero(shown)
    beta = _newton(design[used], shown[used], earned[used])
    return expit(design @ beta).reshape(shape)


def _design(positions: int, actions: int) -> sparse.csr_array:
    """One row for each cell (position, action): intercept, one-hot action, one-hot position."""
    cells = np.arange(positions * actions)
    columns = np.stack([0 * cells, 1 + cells % actions, 1 + actions + cells // actions], axis=1)
    starts = np.arange(0, 3 * len(cells) + 1, 3)
    width = 1 + actions + positions
    return sparse.csr_array((np.ones(3 * len(cells)), columns.ravel(), starts), (len(cells), width))


def _newton(design: sparse.csr_array, shown: Values, earned: Values) -> Values:
    """The coefficients at which no slope of the mean loss is above TOLERANCE."""
    penalty = np.ones(design.shape[1])
    penalty[0] = 0
    beta = np.zeros(design.shape[1])
    beta[0] = np.log(earned.sum() / (shown.sum() - earned.sum()))
    for _ in range(_MOST_STEPS):
        chance = expit(design @ beta)
        slope = design.T @ (shown * chance - earned) + penalty * beta
        if np.abs(slope).max() <= TOLERANCE * shown.sum():
            return beta
        curvature = sparse.diags_array(np.maximum(shown * chance * (1 - chance), 1e-300))
        hessian = (design.T @ curvature @ design + sparse.diags_array(penalty)).tocsc()
        beta = _shorter_until_better(design, (shown, earned, penalty), beta, spsolve(hessian, slope))
    raise TrainingError(
        f"The reward model did not converge within {_MOST_STEPS} Newton steps; check that rewards and "
        "positions are what they were said to be."
    )


def _shorter_until_better(
    design: sparse.csr_array, data: tuple[Values, Values, Values], beta: Values, step: Values
) -> Values:
    """Coefficients beta - step, the step halved until the loss is not higher than before."""
    shown, earned, penalty = data

    def loss(at: Values) -> float:
        logits = design @ at
        return float(shown @ np.logaddexp(0, logits) - earned @ logits + penalty @ at**2 / 2)

    before = loss(beta)
    for _ in range(30):
        if loss(beta - step) <= before + 1e-12 * abs(before):
            break
        step = step / 2
    return beta - step
