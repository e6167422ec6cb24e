"""What was shown lately rests: it is hidden, or its chance of a click is discounted."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.repeats import FIRST, RestCurve, Showings
from towpath.ranking.top_k import HIDDEN


@dataclass(frozen=True)
class Resting:
    """What rests, and for how long; by default nothing does."""

    hide_shown: bool = False  # whatever was ever shown is not shown again
    most_showings: int | None = None  # an item that a user was shown so often is not shown again
    curve: RestCurve | None = None  # discounts by the time since the last showing


@dataclass(frozen=True)
class Rest:
    """How a recommender lets items rest: the rule, and what has been shown so far."""

    resting: Resting
    showings: Showings

    def __call__(self, scores: Tensor, users: NDArray[np.int64], now: int) -> Tensor:
        """The scores (b, items) of these users (b,) at this moment, with what rests hidden or discounted."""
        return rested(scores, *self.showings.of(users), now, self.resting)


def rested(
    scores: Tensor, counts: NDArray[np.int64], last: NDArray[np.int64], now: int, resting: Resting
) -> Tensor:
    """Scores (b, n) after the rule, from how often (b, n) and when last (b, n) each pair was shown.

    Scores are logits; a discount of d makes the odds d times as large:  score + log d(now - last).
    """
    since = np.where(counts > 0, np.maximum(now - last, 0), FIRST)
    found = scores.clone()
    if resting.curve is not None:
        found += torch.from_numpy(np.log(resting.curve.at(since))).to(found.dtype)
    hidden = np.zeros(counts.shape, dtype=np.bool_)
    if resting.hide_shown:
        hidden |= counts > 0
    if resting.most_showings is not None:
        hidden |= counts >= resting.most_showings
    return found.masked_fill(torch.from_numpy(hidden), HIDDEN)
