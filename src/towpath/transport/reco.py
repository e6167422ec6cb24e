"""Which pairs f would show: the deployment domain P_f."""

from typing import Literal

import torch
from torch import Tensor

from towpath.ranking.top_k import top_k

Relaxation = Literal["hard", "soft"]


def shown(margins: Tensor, relaxation: Relaxation = "hard", temperature: float = 1.0) -> Tensor:
    """Whether each pair would be shown, from its margin: score minus the user's threshold; any shape.

    hard   1 if the margin is not negative, else 0; no gradient, as in the paper's Algorithm 1
    soft   sigmoid(margin / temperature)

    >>> shown(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 1., 1.])
    """
    if relaxation == "soft":
        return torch.sigmoid(margins / temperature)
    return (margins >= 0).to(margins.dtype)


def pool_thresholds(pool_scores: Tensor, k: int) -> Tensor:
    """The score that a pair must beat to be among the best k of a pool of unseen items: (b,).

    pool_scores: (b, m). A pair counts as shown if fewer than k of the pool score strictly higher, that is, if
    it scores no lower than the k-th best of the pool.
    """
    return top_k(pool_scores, k)[0][:, -1]
