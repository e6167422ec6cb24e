"""The paper's objective (its equation 6) as pure functions of numbers that others computed.

    min over f, w   max over g:   E_w[l(f)] + penalty * (E_w[g] - E_f[g])

E_w is the mean over training pairs reweighted by w, E_f the mean over the pairs that f would show, l the loss
of f and g a Lipschitz critic, whose largest value of E_w[g] - E_f[g] is the Wasserstein distance between the
two times its Lipschitz constant. Each player descends or ascends its own payoff, the others held fixed.

Measures are normalised: weights have mean one over the pairs they range over. The paper's raw sums are
`literal`: they let the masses of w and f differ, which is what makes them degenerate (docs/deviations/).
"""

from typing import Literal

import torch
from torch import Tensor

Measure = Literal["normalised", "literal"]

# Divides empty measures to zero instead of NaN.
_TINY = 1e-12


def mean_one(weights: Tensor, reweight_mask: Tensor) -> Tensor:
    """Weights with mean one over the pairs in the mask, and one exactly elsewhere.

        w_k / mean of w over the mask   for k in the mask,   1 otherwise

    weights (b, k) > 0, reweight_mask (b, k) bool.

    >>> mean_one(torch.tensor([[5.0, 1.0, 3.0]]), torch.tensor([[False, True, True]]))
    tensor([[1.0000, 0.5000, 1.5000]])
    """
    inside = reweight_mask.to(weights.dtype)
    mean = (weights * inside).sum() / inside.sum().clamp(min=1)
    return torch.where(reweight_mask, weights / mean.clamp(min=_TINY), torch.ones_like(weights))


def mass(weights: Tensor, reweight_mask: Tensor, measure: Measure = "normalised") -> Tensor:
    """The measure that weights put on the pairs in the mask: (b, k), zero elsewhere.

    normalised: it sums to one (to zero if all weights are zero). literal: w / number of pairs in the mask,
    the raw sum of the paper up to a constant, whatever it sums to.
    """
    inside = weights * reweight_mask.to(weights.dtype)
    if measure == "literal":
        return inside / reweight_mask.sum().clamp(min=1)
    return inside / inside.sum().clamp(min=_TINY)


def weighted_risk(loss: Tensor, weights: Tensor) -> Tensor:
    """The risk that f descends: mean of w * l, both (b, k).

    With `mean_one` weights this is E_w[l]; with raw weights it is the paper's sum up to a constant.
    """
    return (weights * loss).mean()


def transport_gap(critic: Tensor, mass_w: Tensor, deployed: Tensor, mass_f: Tensor) -> Tensor:
    """What g ascends: how much more the critic finds under w than under f.

        E_w[g] - E_f[g] = sum_k mass_w_k g_k - sum_j mass_f_j g_j

    critic, mass_w: (b, k) on training pairs; deployed, mass_f: any shape, on the pairs that f shows. At most
    Lipschitz constant times Wasserstein distance, and equal to it for the best critic.
    """
    return (mass_w * critic).sum() - (mass_f * deployed).sum()


def weight_payoff(weights: Tensor, loss: Tensor, critic: Tensor, penalty: float) -> Tensor:
    """What w descends: mean of w * (l + penalty * g), all (b, k); loss and critic held fixed.

    It rises on pairs that are easy, or shown by f but not yet weighted so.
    """
    return (weights * (loss + penalty * critic)).mean()


def payoff_slopes(
    weights: Tensor,
    loss: Tensor,
    critic: Tensor,
    penalty: float,
    reweight_mask: Tensor,
    measure: Measure = "normalised",
) -> Tensor:
    """The derivative of `weight_payoff` by the raw weights, before they are given mean one: (b, k).

        (c_k - sum_j w_j c_j / sum_j w_j) / (n mean of w)    for k in the mask,   c = l + penalty * g

    and zero elsewhere; n pairs in all, j over the mask. For literal weights it is c_k / n.
    """
    charge = loss + penalty * critic
    if measure == "literal":
        return charge * reweight_mask / charge.numel()
    inside = weights * reweight_mask
    total = inside.sum().clamp(min=_TINY)
    mean = total / reweight_mask.sum().clamp(min=1)
    return (charge - (inside * charge).sum() / total) * reweight_mask / (mean * charge.numel())


def effective_sample_size(weights: Tensor, reweight_mask: Tensor) -> Tensor:
    """The share of pairs in the mask that equal weights would need for the same variance, in (0, 1].

        (sum w)^2 / (n sum w^2)

    >>> effective_sample_size(torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.ones(4, dtype=torch.bool))
    tensor(0.5000)
    """
    inside = weights * reweight_mask.to(weights.dtype)
    return inside.sum().square() / (reweight_mask.sum() * inside.square().sum()).clamp(min=_TINY)


def dual_step(penalty: float, gap: float, target: float, rate: float) -> float:
    """The penalty after one ascent step on the constraint `gap <= target`, never negative.

    >>> dual_step(1.0, gap=0.5, target=0.3, rate=0.1)
    1.02
    """
    return max(0.0, penalty + rate * (gap - target))
