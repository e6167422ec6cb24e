"""The moves of w and g in a game of margins, in a few loops instead of some fifty tensors.

Compiled by numba where it is installed; `transport.game` has a version in plain torch, which takes every
other game too.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from towpath.kernels.ordering import usable as usable


@dataclass(frozen=True)
class MarginPairs:
    """The pairs of a batch: margins, losses and mask, the pairs that w reweighs, all (b, k)."""

    margins: Tensor
    losses: Tensor
    mask: Tensor


def line_slopes(
    pairs: MarginPairs, line: Tensor, bounds: tuple[float, float], penalty: float
) -> Tensor | None:
    """The derivatives of w's payoff by its line (3,) under the best critic; None where no pair is shown.

    bounds: the smallest and the largest weight.
    """
    from towpath.kernels import compiled_margins as compiled

    margins, losses, mask = _flat(pairs)
    weights, charge = np.empty_like(margins), np.empty(len(margins))
    compiled.weigh(margins, line.detach().numpy(), weights, *bounds)
    if not compiled.charges(margins, losses, mask, weights, penalty, charge):
        return None
    slopes = torch.empty(3)
    compiled.line_slopes(margins, mask, weights, charge, *bounds, slopes.numpy())
    return slopes


def level_weights(pairs: MarginPairs, line: Tensor, bounds: tuple[float, float]) -> Tensor:
    """The weights of the pairs, with mean one over the mask and one elsewhere: (b, k)."""
    from towpath.kernels import compiled_margins as compiled

    margins, _, mask = _flat(pairs)
    weights = torch.empty_like(pairs.margins)
    flat = weights.view(-1).numpy()
    compiled.weigh(margins, line.detach().numpy(), flat, *bounds)
    compiled.mean_one(flat, mask)
    return weights


def _flat(pairs: MarginPairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    margins, losses, mask = (
        t.contiguous().view(-1).numpy() for t in (pairs.margins, pairs.losses, pairs.mask)
    )
    return margins, losses, mask
