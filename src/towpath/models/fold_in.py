"""Users whom training has not seen, as a model would know them from their items alone."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from towpath.data.interactions import Histories
from towpath.models.scorer import Scorer


@runtime_checkable
class HasFoldIn(Protocol):
    """Can score users of whom nothing is known but the items they have interacted with."""

    def fold_in(self, histories: Histories) -> Scorer:
        """A scorer whose users are these, in their order; it shares what it knows of items with this one."""


@dataclass(frozen=True)
class QuadraticLoss:
    """The logistic loss of training and its L2 penalty, expanded at the log-odds z of a positive.

        loss(score) = c/2 (score - t)^2 + constant,   z = -log(negatives),  s = sigmoid(z),  c = s (1 - s)
        t = z + 1/s for positives, z - 1/(1 - s) for negatives

    Scores lie around z, since of 1 + negatives pairs one is a positive. An expansion at zero gives too much
    weight to items that are far below (benchmarks/fold_in.py).
    """

    negatives: int  # for each positive
    l2: float  # penalty on the mean squared norm of the vectors of each pair

    @property
    def target(self) -> float:
        """The score that a positive is drawn to."""
        return 1 + self.negatives - math.log(self.negatives)

    @property
    def negative_target(self) -> float:
        """The score that a negative is drawn to."""
        return -1 - 1 / self.negatives - math.log(self.negatives)

    @property
    def ridge(self) -> float:
        """The penalty on |p|^2 for each positive, where (score - t)^2 has weight one."""
        curvature = self.negatives / (1 + self.negatives) ** 2
        return 2 / curvature * self.l2 * (1 + self.negatives)


class RidgeFoldIn:
    """Finds a vector and a bias for each history, by ridge regression on the item vectors.

        (p, c) = argmin  sum_i w_i (<p, q_i> + c + o_i - t_i)^2 + ridge |p|^2

    Items of the history have weight 1 and the target of positives, all others share the weight of `negatives`
    per positive and have the target of negatives. An item that is in a history twice counts once. The sums
    over the catalogue, which all regressions share, are made once.
    """

    def __init__(self, items: Tensor, offsets: Tensor, loss: QuadraticLoss) -> None:
        """items: (n, d) the vectors q; offsets: (n,) the part o of a score that no user changes."""
        self._items, self._offsets, self._loss = items, offsets, loss
        design = _with_ones(items)
        self._gram = design.T @ design  # (d + 1, d + 1)
        self._low = design.T @ (loss.negative_target - offsets)  # (d + 1,) as if all items were negatives

    def vectors(self, histories: Histories) -> Tensor:
        """One row for each history: (b, d + 1)."""
        rows, own = distinct_pairs(histories, len(self._items))
        counts = torch.bincount(rows, minlength=len(histories.lengths))
        # One small system at a time: its sums over the history are of different lengths.
        solved = [self._solve(mine) for mine in torch.split(own, counts.tolist())]
        return torch.stack(solved) if solved else self._low.new_zeros(0, len(self._low))

    def _solve(self, own: Tensor) -> Tensor:
        """The solution (d + 1,) for one history of these items (m,)."""
        if not len(own):
            return torch.zeros_like(self._low)
        loss, vectors, offsets = self._loss, _with_ones(self._items[own]), self._offsets[own]
        rest = loss.negatives * len(own) / len(self._items)  # weight of an item that is not in the history
        left = rest * self._gram + (1 - rest) * vectors.T @ vectors
        left.diagonal()[:-1] += loss.ridge * len(own)  # the bias, at the end, is free
        high = vectors.T @ (loss.target - offsets) - rest * vectors.T @ (loss.negative_target - offsets)
        return torch.linalg.solve(left, rest * self._low + high)


def _with_ones(vectors: Tensor) -> Tensor:
    """Vectors (m, d) with a last coordinate that the bias of a user multiplies: (m, d + 1)."""
    return torch.cat([vectors, vectors.new_ones(len(vectors), 1)], dim=1)


def distinct_pairs(histories: Histories, n_items: int) -> tuple[Tensor, Tensor]:
    """Each item of each history once, as (history, item) in the order of both: (m,) each."""
    lengths = torch.from_numpy(histories.lengths)
    owners = torch.arange(len(lengths)).repeat_interleave(lengths)
    keys = torch.unique(owners * n_items + torch.from_numpy(histories.items).long())
    return keys // n_items, keys % n_items
