"""Counterfactual risks of a softmax policy, and the form of them that can be trained in batches.

Rows with loss d = -(r - baseline) and weight w = min(f / p, M). Four risks:

    ips         mean(d w)
    poem        mean(d w) + c sqrt(Var(d w) / n)                              (Swaminathan and Joachims 2015a)
    snips       R = sum(d w) / sum(w)
    norm-poem   R + c sqrt(sum (d - R)^2 w^2) / sum(w)                        (Swaminathan and Joachims 2015b)

A ratio and a square root tie all rows together. For batches each risk is expanded once an epoch into
mean(a_i w_i + b_i w_i^2) with fixed a and b, whose gradient where it was expanded is that of the risk itself.
For poem it is the published majorisation of the square root.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class RiskForm:
    """Which of the four risks."""

    normalised: bool = False
    penalty: float = 0.0  # c, on the spread


@dataclass(frozen=True)
class Expansion:
    """Coefficients of a risk around the weights it was expanded at; both (n,)."""

    linear: Tensor  # a
    square: Tensor  # b

    def surrogate(self, weights: Tensor, rows: Tensor) -> Tensor:
        """The mean over these rows (b,) of a w + b w^2, weights (b,)."""
        return (self.linear[rows] * weights + self.square[rows] * weights.square()).mean()


def counterfactual_risk(weights: Tensor, losses: Tensor, form: RiskForm) -> Tensor:
    """The risk over all rows, both (n,); any mass that the log misses counts as loss 0 unless normalised."""
    n = len(weights)
    if not form.normalised:
        values = losses * weights
        spread = (values.var() / n).sqrt() if form.penalty else values.new_zeros(())
        return values.mean() + form.penalty * spread
    total = weights.sum()
    ratio = (losses * weights).sum() / total
    spread = (
        ((losses - ratio) * weights).square().sum().sqrt() / total if form.penalty else total.new_zeros(())
    )
    return ratio + form.penalty * spread


def expand_risk(weights: Tensor, losses: Tensor, form: RiskForm) -> Expansion:
    """The expansion of the risk around these weights, both (n,)."""
    return (_expand_ratio if form.normalised else _expand_mean)(weights, losses, form.penalty)


def _expand_mean(weights: Tensor, losses: Tensor, penalty: float) -> Expansion:
    """With u = d w, Var = k (mean u^2 - mean(u)^2), k = n / (n - 1), both parts to first order in u, u^2."""
    n, values = len(weights), losses * weights
    spread = (n * values.var()).sqrt()
    scale = penalty * n / (n - 1) / spread if penalty and spread > 0 else torch.zeros_like(spread)
    return Expansion(losses * (1 - scale * values.mean()), losses.square() * scale / 2)


def _expand_ratio(weights: Tensor, losses: Tensor, penalty: float) -> Expansion:
    """With D = mean(w), S = mean((d - R)^2 w^2): R and sqrt(S / n) / D, each to first order in w, w^2."""
    n, mean = len(weights), weights.mean()
    apart = losses - (losses * weights).mean() / mean
    spread = (apart * weights).square().mean().sqrt()
    scale = penalty / (n**0.5 * spread * mean) if penalty and spread > 0 else torch.zeros_like(spread)
    by_ratio = 1 - scale * (apart * weights.square()).mean()
    linear = apart / mean * by_ratio - scale * spread.square() / mean
    return Expansion(linear, apart.square() * scale / 2)
