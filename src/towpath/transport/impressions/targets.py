"""What each head is to say of the pairs of a batch, and how much each pair counts."""

import torch
from torch import Tensor

from towpath.training.impressions import ImpressionBatch
from towpath.transport.impressions.members import CLICK, HEADS, LIKENESS, RELEVANCE


def head_targets(batch: ImpressionBatch) -> Tensor:
    """Targets (b, k, H): column 0 is positive for e and c, the click itself for r; draws are negative."""
    targets = torch.zeros(*batch.items.shape, HEADS, device=batch.items.device)
    targets[:, 0, LIKENESS] = targets[:, 0, CLICK] = 1
    targets[:, 0, RELEVANCE] = batch.clicks
    return targets


def head_weights(batch: ImpressionBatch, open_pairs: Tensor) -> Tensor:
    """Weights (b, k, H) that make a mean of each head's loss, over the pairs that belong to it.

        e   every impression, and draws that were never shown
        r   every impression
        c   clicked impressions, and their draws

    open_pairs: (b, k) 0 for draws that may not be learned from.
    """
    weights = torch.zeros(*batch.items.shape, HEADS, device=batch.items.device)
    drawn = open_pairs[:, 1:]
    weights[:, 0, LIKENESS] = weights[:, 0, RELEVANCE] = 1
    weights[:, 1:, LIKENESS] = drawn * (1 - batch.shown[:, 1:])
    weights[:, 0, CLICK] = batch.clicks
    weights[:, 1:, CLICK] = drawn * batch.clicks[:, None]
    return weights / weights.sum((0, 1)).clamp(min=1)
