"""Losses of scored pairs, one for each pair or each row; the caller takes the mean."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import log_softmax, softplus

from towpath.kernels.softmax_loss import Candidates, Products, Seen, weighted_softmax_loss


def logistic_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of a 0/1 label under sigmoid(logit), any shape.

        l = log(1 + e^s) - y s

    >>> import torch
    >>> logistic_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor([0.6931])
    """
    if logits.requires_grad and not labels.requires_grad and torch.is_grad_enabled():
        return _LogisticLoss.apply(logits, labels)  # type: ignore[no-untyped-call]
    return softplus(logits) - labels * logits


def logistic_slope(logits: Tensor, labels: Tensor) -> Tensor:
    """The derivative of `logistic_loss` by the logit:  sigmoid(s) - y."""
    return torch.sigmoid(logits).sub_(labels)


class _LogisticLoss(torch.autograd.Function):
    """The loss with its gradient, in half as many passes over the pairs."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:
        ctx.save_for_backward(logistic_slope(logits, labels))
        return softplus(logits).sub_(labels * logits)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return ctx.saved_tensors[0] * gradient, None


def softmax_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of each row's positives among all of its items: (b,), from logits and labels (b, k).

        l = log sum_i e^(s_i) - mean of s over the positives

    >>> import torch
    >>> softmax_loss(torch.zeros(1, 4), torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
    tensor([1.3863])
    """
    return -(log_softmax(logits, dim=1) * labels).sum(1) / labels.sum(1)


def catalogue_softmax_risk(
    states: Tensor,
    table: Tensor,
    targets: Tensor,
    weights: Tensor | None = None,
    *,
    candidates: Candidates | None = None,
    product_dtype: torch.dtype | None = None,
    seen: Seen | None = None,
) -> Tensor:
    """Mean of `softmax_loss` over states (b, d), each with one positive (b,) among all rows of table (n, d).

        R = (1/b) sum_j  w_j (log sum_i e^<s_j, t_i> - <s_j, t_target(j)>)

    The (b, n) logits are never held at once. With candidates the inner sum is estimated from them.
    What a state has `seen` is not in its sum, but for the target.
    """
    weights = states.new_ones(len(states)) if weights is None else weights
    products = Products(dtype=product_dtype)
    return weighted_softmax_loss(states, table, targets, weights / len(states), candidates, products, seen)
