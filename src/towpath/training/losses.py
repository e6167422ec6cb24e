"""Losses of one scored pair, elementwise; the mean is taken by whoever knows the measure."""

from torch import Tensor
from torch.nn.functional import softplus


def logistic_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of a 0/1 label under sigmoid(logit), any shape.

        l = log(1 + e^s) - y s

    >>> import torch
    >>> logistic_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor([0.6931])
    """
    return softplus(logits) - labels * logits
