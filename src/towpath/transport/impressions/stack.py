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


def stack_heads(scores: Floats, clicks: Floats, ridge: float) -> Stack:
    """The weights that predict held-out clicks best (super-learner stacking; signs are free).

        z = (score - mean) / sd,    v = argmin mean logloss(y, v0 + <v, z>) + (ridge / m) |v|^2,    w = v / sd

    scores: (n, heads), clicks: (n,) 0 or 1, of pairs that none of the heads was trained on. m counts those of
    the rarer label, which is what the weights are learned from.
    """
    rarer = max(1.0, min(float(clicks.sum()), float((1 - clicks).sum())))
    mean, spread = scores.mean(axis=0), scores.std(axis=0)
    spread = np.where(spread > 1e-12, spread, np.inf)  # a head that says the same of all counts nothing
    columns = np.hstack([np.ones((len(scores), 1)), (scores - mean) / spread])
    found = _ridge_logistic(columns, clicks, np.append(0.0, np.full(scores.shape[1], 2 * ridge / rarer)))
    return Stack(found[1:] / spread, log_loss(columns @ found, clicks))


def _ridge_logistic(columns: Floats, labels: Floats, curvature: Floats) -> Floats:
    """Newton's method, each step halved until the objective falls."""
    weights = np.zeros(columns.shape[1])

    def objective(w: Floats) -> float:
        return log_loss(columns @ w, labels) + 0.5 * float(curvature @ w**2)

    now = objective(weights)
    for _ in range(_STEPS):
        chances = expit(columns @ weights)
        slope = columns.T @ (chances - labels) / len(labels) + curvature * weights
        bend = (columns * (chances * (1 - chances))[:, None]).T @ columns / len(labels)
        step = np.linalg.solve(bend + np.diag(curvature + 1e-9), slope)
        while (then := objective(weights - step)) > now and np.abs(step).max() > _ENOUGH:
            step = step / 2
        weights = weights - step
        if now - then < _ENOUGH:
            break
        now = then
    return weights


def log_loss(logits: Floats, labels: Floats) -> float:
    """Mean logistic loss.

    >>> round(log_loss(np.array([0.0]), np.array([1.0])), 4)
    0.6931
    """
    return float((np.logaddexp(0.0, logits) - labels * logits).mean())
