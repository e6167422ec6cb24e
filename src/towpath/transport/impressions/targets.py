"""Which impressions are evidence of likeness to the log."""

import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.data.policies import chosen_elsewhere
from towpath.transport.impressions.settings import LibrarySettings


def likeness_rows(impressions: Interactions, settings: LibrarySettings) -> Tensor:
    """Which impressions are compared with the catalogue, as 0 and 1: (n,)."""
    every = settings.likeness_rows == "all"
    return torch.ones(len(impressions)) if every else torch.from_numpy(chosen_elsewhere(impressions)).float()
