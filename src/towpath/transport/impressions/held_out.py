"""The part of the impressions that no loss sees, by which heads are weighed."""

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.data.policies import shown_at_random
from towpath.errors import DataError
from towpath.rng import Rng
from towpath.transport.impressions.stack import RandomPart

# More held-out impressions than this do not make the weights any better.
_MOST = 200_000
# Impressions that were shown at random have the last word if there are so many of each label: in simulated
# worlds (seeds 21 and 22) 24 and 28 clicks made no better lists, 133 and 158 predicted new clicks better.
_ENOUGH_RANDOM = 100
# Chances of being shown count as no smaller than this share of their mean.
_LEAST_CHANCE = 0.1

Rows = Literal["auto", "all"]


class HeldOut:
    """A random share of the impressions, those of one request together.

    Where the log names impressions that were shown at random, those of the held-out ones are told apart: what
    they say holds for the whole catalogue, the others speak of what was chosen.
    """

    def __init__(
        self, impressions: Interactions, share: float, rng: Rng, most: int = _MOST, which: Rows = "all"
    ) -> None:
        self.mask = hold_out(impressions, share, rng)  # (n,)
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
        random = np.flatnonzero(shown_at_random(impressions)[rows])
        self.n_random = len(random)
        # Those that have the last word on the weights; None: all count alike.
        self.random = None if which == "all" else self._random_part(impressions, random)

    def _random_part(self, impressions: Interactions, rows: NDArray[np.int64]) -> RandomPart | None:
        """These rows, which were shown at random; None where they are too few, or there are no others."""
        clicked = int(self.clicks[rows].sum())
        if len(rows) == len(self.rows) or min(clicked, len(rows) - clicked) < _ENOUGH_RANDOM:
            return None
        if impressions.propensities is None:
            return RandomPart(rows)
        chances = impressions.propensities[self.rows[rows]].astype(np.float64)
        if not (chances > 0).all():  # which is false where one is not logged
            return RandomPart(rows)
        weights = 1 / np.maximum(chances, _LEAST_CHANCE * chances.mean())
        return RandomPart(rows, weights / weights.mean())

    def remark(self) -> str:
        """Which impressions weigh the heads, where some were shown at random."""
        those = f"{self.n_random:,} of the {len(self.rows):,} held-out impressions were shown at random"
        if self.random is None:
            return f"{those}; all held-out impressions weigh the heads alike."
        return f"{those} and have the last word on the weights of the heads."


def hold_out(impressions: Interactions, share: float, rng: Rng) -> NDArray[np.bool_]:
    """Which impressions are held out, at random, those of one request together: (n,)."""
    draw = rng.numpy("held-out")
    if impressions.requests is None:
        return draw.random(len(impressions)) < share
    return (draw.random(int(impressions.requests.max(initial=0)) + 1) < share)[impressions.requests]
