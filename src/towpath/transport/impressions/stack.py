"""How much each head counts: a ridge-penalised logistic regression on held-out impressions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

_STEPS, _ENOUGH = 50, 1e-8

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stack:
    """Weights of the heads as they are (not standardised), and how well they predict held-out clicks."""

    weights: Floats  # (heads,)
    log_loss: float


@dataclass(frozen=True)
class RandomPart:
    """Held-out impressions that were shown at random: their places among all, and how much each counts."""

    rows: NDArray[np.int64]  # (m,)
    weights: Floats | None = None  # (m,) of mean one, by their chances of being shown; None: all the same


def stack_heads(scores: Floats, clicks: Floats, ridge: float, random: RandomPart | None = None) -> Stack:
    """The weights that predict held-out clicks best (super-learner stacking; signs are free).

        z = (score - mean) / sd,    v = argmin mean logloss(y, v0 + <v, z>) + (ridge / m) |v|^2,    w = v / sd

    scores: (n, heads), clicks: (n,) 0 or 1, of pairs that none of the heads was trained on. m counts those of
    the rarer label, which is what the weights are learned from.

    Where some of the pairs were shown at random, these have the last word:  v is then found once more by them
    alone, with (ridge / m) |v - v_all|^2 in place of the penalty, so that few of them change little.
    """
    mean, spread = scores.mean(axis=0), scores.std(axis=0)
    spread = np.where(spread > 1e-12, spread, np.inf)  # a head that says the same of all counts nothing
    columns = np.hstack([np.ones((len(scores), 1)), (scores - mean) / spread])
    found = _ridge_logistic(columns, clicks, ridge, np.zeros(columns.shape[1]))
    if random is not None:
        columns, clicks = columns[random.rows], clicks[random.rows]
        found = _ridge_logistic(columns, clicks, ridge, found, random.weights)
    return Stack(found[1:] / spread, log_loss(columns @ found, clicks))


def _ridge_logistic(
    columns: Floats, labels: Floats, ridge: float, centre: Floats, each: Floats | None = None
) -> Floats:
    """Newton's method from the centre, each step halved until the objective falls; the intercept is free."""
    each = np.ones(len(labels)) if each is None else each
    rarer = max(1.0, min(float(labels.sum()), float((1 - labels).sum())))
    curvature = np.append(0.0, np.full(columns.shape[1] - 1, 2 * ridge / rarer))
    weights = centre

    def objective(w: Floats) -> float:
        return log_loss(columns @ w, labels, each) + 0.5 * float(curvature @ (w - centre) ** 2)

    now = objective(weights)
    for _ in range(_STEPS):
        chances = expit(columns @ weights)
        slope = columns.T @ (each * (chances - labels)) / len(labels)
        slope += curvature * (weights - centre)
        bend = (columns * (each * chances * (1 - chances))[:, None]).T @ columns / len(labels)
        step = np.linalg.solve(bend + np.diag(curvature + 1e-9), slope)
        while (then := objective(weights - step)) > now and np.abs(step).max() > _ENOUGH:
            step = step / 2
        weights = weights - step
        if now - then < _ENOUGH:
            break
        now = then
    return weights


def log_loss(logits: Floats, labels: Floats, each: Floats | float = 1.0) -> float:
    """Mean logistic loss, of pairs that count by `each` (n,).

    >>> round(log_loss(np.array([0.0]), np.array([1.0])), 4)
    0.6931
    """
    return float((each * (np.logaddexp(0.0, logits) - labels * logits)).mean())
