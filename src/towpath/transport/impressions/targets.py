"""What each head is to say of the pairs of a batch, and how much each pair counts."""

import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.data.policies import chosen_elsewhere
from towpath.training.impressions import ImpressionBatch
from towpath.transport.impressions.members import CLICK, HEADS, LIKENESS, RELEVANCE
from towpath.transport.impressions.settings import LibrarySettings


def likeness_rows(impressions: Interactions, settings: LibrarySettings) -> Tensor:
    """Which impressions are compared with the catalogue, as 0 and 1: (n,)."""
    every = settings.likeness_rows == "all"
    return torch.ones(len(impressions)) if every else torch.from_numpy(chosen_elsewhere(impressions)).float()


def head_targets(batch: ImpressionBatch) -> Tensor:
    """Targets (b, k, H): column 0 is positive for e and c, the click itself for r; draws are negative."""
    targets = torch.zeros(*batch.items.shape, HEADS, device=batch.items.device)
    targets[:, 0, LIKENESS] = targets[:, 0, CLICK] = 1
    targets[:, 0, RELEVANCE] = batch.clicks
    return targets


def head_weights(batch: ImpressionBatch, open_pairs: Tensor, elsewhere: Tensor | None = None) -> Tensor:
    """Weights (b, k, H) that make a mean of each head's loss, over the pairs that belong to it.

        e   impressions that were chosen elsewhere, and draws that were never shown
        r   every impression
        c   clicked impressions that were chosen elsewhere, and their draws

    open_pairs: (b, k) 0 for draws that may not be learned from. elsewhere: (b,) 0 for impressions that a
    model trained on this log has chosen; None: there are none. What such a model shows it has found likely
    itself; e and c, which compare with the catalogue, would learn its choices, errors included, as evidence.
    """
    weights = torch.zeros(*batch.items.shape, HEADS, device=batch.items.device)
    elsewhere = torch.ones_like(batch.clicks) if elsewhere is None else elsewhere
    drawn = open_pairs[:, 1:] * elsewhere[:, None]
    weights[:, 0, LIKENESS], weights[:, 0, RELEVANCE] = elsewhere, 1
    weights[:, 1:, LIKENESS] = drawn * (1 - batch.shown[:, 1:])
    weights[:, 0, CLICK] = batch.clicks * elsewhere
    weights[:, 1:, CLICK] = drawn * batch.clicks[:, None]
    return weights / weights.sum((0, 1)).clamp(min=1)
