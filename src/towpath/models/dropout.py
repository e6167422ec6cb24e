"""Dropout whose draws depend on nothing but its own state, so that a resumed run repeats them."""

import numpy as np
import torch
from torch import Tensor, nn

from towpath.rng import Rng

_LEVELS = 256  # a byte decides over each number: four times cheaper than a float


class Dropout(nn.Module):
    """Sets a random share of the numbers to zero while training, and scales up the others to the same mean.

    Seed and number of draws are part of the state: a stored model state contains them. The share
    is rounded to 1/256.
    """

    seed: Tensor
    draws: Tensor

    def __init__(self, share: float) -> None:
        super().__init__()
        self._dropped = round(share * _LEVELS)
        self.register_buffer("seed", torch.zeros((), dtype=torch.long))
        self.register_buffer("draws", torch.zeros((), dtype=torch.long))

    def initialise(self, rng: Rng, name: str) -> None:
        """Start the draws of this name."""
        self.seed.fill_(int(rng.numpy("dropout", name).integers(2**62)))
        self.draws.zero_()

    def forward(self, values: Tensor, slice_of: tuple[int, int] | None = None) -> Tensor:
        """The values, any shape, some of them zero; all of them as they are outside of training.

        If the values are rows of a larger batch, `slice_of` says which row of it is the first, and how many
        it has: then they lose what they would lose there.
        """
        if not self.training or not self._dropped:
            return values
        generator = Rng(int(self.seed)).numpy("draw", int(self.draws))
        self.draws += 1
        first, rows = slice_of or (0, len(values))
        wide = values.numel() // max(1, len(values))
        drawn = np.frombuffer(generator.bytes(rows * wide), dtype=np.uint8)
        drawn = drawn[first * wide : first * wide + values.numel()]
        # As float32 at once: torch is slow to multiply by bools.
        kept = torch.from_numpy((drawn >= self._dropped).astype(np.float32)).view(values.shape)
        return values * kept.mul_(_LEVELS / (_LEVELS - self._dropped)).to(values)
