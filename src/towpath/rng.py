"""One seed, many named and independent generators.

A generator is found by name, never by the order in which it was asked for, so that a run which resumes at
epoch 7 draws what an uninterrupted run draws at epoch 7, and a new consumer does not disturb the others.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Rng:
    """The root of all randomness of one run.

    >>> Rng(0).numpy("negatives", 3).integers(100) == Rng(0).numpy("negatives", 3).integers(100)
    np.True_
    """

    seed: int

    def numpy(self, *name: str | int) -> np.random.Generator:
        """The numpy generator of this name, at its first draw."""
        return np.random.default_rng(self._entropy(name))

    def torch(self, *name: str | int) -> torch.Generator:
        """The torch CPU generator of this name, at its first draw."""
        return torch.Generator().manual_seed(self._entropy(name) % 2**63)

    def child(self, *name: str | int) -> "Rng":
        """A root of this name with a randomness of its own, for a part that draws like the whole does."""
        return Rng(int(self.numpy(*name).integers(2**62)))

    def _entropy(self, name: tuple[str | int, ...]) -> int:
        # A cryptographic hash is stable over processes and Python versions, which hash() is not.
        text = "\0".join([str(self.seed), *map(str, name)])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")
