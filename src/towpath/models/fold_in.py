"""Users whom training has not seen, as a model would know them from their items alone."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from towpath.data.interactions import Histories
from towpath.models.scorer import Scorer

# The defaults of the fit loop: negatives for each positive, and the L2 penalty on the vectors of a pair.
_NEGATIVES, _L2 = 3, 2e-3
# Where the quadratic expansion of the logistic loss at zero has its minimum, for positives and negatives.
_TARGET = 2.0


@runtime_checkable
class HasFoldIn(Protocol):
    """Can score users of whom nothing is known but the items they have interacted with."""

    def fold_in(self, histories: Histories) -> Scorer:
        """A scorer whose users are these, in their order; it shares what it knows of items with this one."""


def ridge_vectors(items: Tensor, offsets: Tensor, histories: Histories) -> Tensor:
    """A vector and a bias for each history, by ridge regression on the item vectors: (b, d + 1).

        (p, c) = argmin  sum_i w_i (<p, q_i> + c + o_i - t_i)^2 + ridge |p|^2

    items: (n, d) the vectors q; offsets: (n,) the part o of a score that no user changes. Items of the
    history have weight 1 and target 2, the others share the weight of three negatives per positive and
    have target -2: the quadratic expansion at zero of the logistic loss that training minimises, its L2
    penalty included. An item that is in a history twice counts once.
    """
    design = torch.cat([items, items.new_ones(len(items), 1)], dim=1)
    everyone = _Sums(design.T @ design, design.T @ (-_TARGET - offsets), len(items))
    rows, own = distinct_pairs(histories, len(items))
    counts = torch.bincount(rows, minlength=len(histories.lengths))
    # One small system at a time: its sums over the history are of different lengths.
    solved = [_solve(design[mine], offsets[mine], everyone) for mine in torch.split(own, counts.tolist())]
    return torch.stack(solved) if solved else design.new_zeros(0, design.shape[1])


def distinct_pairs(histories: Histories, n_items: int) -> tuple[Tensor, Tensor]:
    """Each item of each history once, as (history, item) in the order of both: (m,) each."""
    lengths = torch.from_numpy(histories.lengths)
    owners = torch.arange(len(lengths)).repeat_interleave(lengths)
    keys = torch.unique(owners * n_items + torch.from_numpy(histories.items).long())
    return keys // n_items, keys % n_items


@dataclass(frozen=True)
class _Sums:
    """Sums over the whole catalogue, which every regression shares."""

    gram: Tensor  # (d + 1, d + 1)
    low: Tensor  # (d + 1,) vectors times targets, as if all items were negatives
    items: int


def _solve(vectors: Tensor, offsets: Tensor, everyone: _Sums) -> Tensor:
    """The solution (d + 1,) for one history whose items have these vectors (m, d + 1) and offsets (m,)."""
    if not len(vectors):
        return torch.zeros_like(everyone.low)
    rest = _NEGATIVES * len(vectors) / everyone.items  # weight of an item that is not in the history
    left = rest * everyone.gram + (1 - rest) * vectors.T @ vectors
    left.diagonal()[:-1] += 8 * _L2 * (1 + _NEGATIVES) * len(vectors)  # the bias, at the end, is free
    high = vectors.T @ (_TARGET - offsets) - rest * vectors.T @ (-_TARGET - offsets)
    return torch.linalg.solve(left, rest * everyone.low + high)
