"""The part of the impressions that no loss sees, by which heads are weighed."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.data.negatives import PairSet
from towpath.errors import DataError
from towpath.rng import Rng
from towpath.training.impressions import ImpressionBatch

# More held-out impressions than this do not make the weights any better.
_MOST = 200_000


class HeldOut:
    """A random share of the impressions, those of one request together."""

    def __init__(self, impressions: Interactions, share: float, rng: Rng, most: int = _MOST) -> None:
        self.mask = hold_out(impressions, share, rng)  # (n,)
        self.pairs = PairSet(impressions.where(self.mask))
        rows = np.flatnonzero(self.mask)
        if len(rows) > most:
            rows = np.sort(rng.numpy("stack").choice(rows, most, replace=False))
        self.rows = rows  # (n,) places in the table of impressions
        self.users, self.items = (
            torch.from_numpy(codes[rows]).long() for codes in (impressions.users, impressions.items)
        )
        self.clicks = np.asarray(impressions.labels)[rows].astype(np.float64)
        if not 0 < self.clicks.sum() < len(rows):
            raise DataError(
                f"The weights of the members need held-out impressions of both kinds, but of {len(rows):,} "
                f"{int(self.clicks.sum()):,} were clicked; bring more data, or set penalty=0."
            )

    def open_pairs(self, batch: ImpressionBatch) -> Tensor:
        """Which pairs (b, k) of a batch are not held out, as 0 and 1."""
        users = np.repeat(batch.context.users.cpu().numpy(), batch.items.shape[1])
        held = self.pairs.contains(users, batch.items.cpu().numpy().ravel()).reshape(batch.items.shape)
        return torch.from_numpy(~held).float()


def hold_out(impressions: Interactions, share: float, rng: Rng) -> NDArray[np.bool_]:
    """Which impressions are held out, at random, those of one request together: (n,)."""
    draw = rng.numpy("held-out")
    if impressions.requests is None:
        return draw.random(len(impressions)) < share
    return (draw.random(int(impressions.requests.max(initial=0)) + 1) < share)[impressions.requests]
