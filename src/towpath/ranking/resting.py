"""What was shown lately rests: it is hidden, or its chance of a click is discounted."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.data.repeats import FIRST, RestCurve, Showings, showings_of, times_of
from towpath.ranking.top_k import HIDDEN


@dataclass(frozen=True)
class Resting:
    """What rests, and for how long; by default nothing does."""

    hide_shown: bool = False  # whatever was ever shown is not shown again
    most_showings: int | None = None  # an item that a user was shown so often is not shown again
    curve: RestCurve | None = None  # discounts by the time since the last showing


NOTHING_RESTS = Resting()


@dataclass(frozen=True)
class Rest:
    """How a recommender lets items rest: the rule, what has been shown so far, and what time it is."""

    resting: Resting
    showings: Showings
    now: int | NDArray[np.int64]  # one moment, or that of every user by code

    def __call__(
        self, scores: Tensor, users: NDArray[np.int64], items: NDArray[np.int64] | None = None
    ) -> Tensor:
        """The scores of these users (b,) with what rests hidden or discounted.

        scores: (b, c) of the whole catalogue, or of `items` (b, c) or (1, c).
        """
        now = self.now if isinstance(self.now, int) else self.now[users][:, None]
        counts, last = self.showings.of(users)
        if items is not None:
            places = np.broadcast_to(items, scores.shape)
            counts, last = np.take_along_axis(counts, places, 1), np.take_along_axis(last, places, 1)
        return rested(scores, counts, last, now, self.resting)


def rest_by(log: Interactions, resting: Resting, now: int | NDArray[np.int64] | None = None) -> Rest | None:
    """The rule with what this log of impressions has shown, at its end unless `now` says otherwise.

    None where the rule lets nothing rest.
    """
    if resting == NOTHING_RESTS:
        return None
    last = int(times_of(log).max(initial=0)) if now is None else now
    return Rest(resting, showings_of(log), last)


def rested(
    scores: Tensor,
    counts: NDArray[np.int64],
    last: NDArray[np.int64],
    now: int | NDArray[np.int64],
    resting: Resting,
) -> Tensor:
    """Scores (b, n) after the rule, from how often (b, n) and when last (b, n) each pair was shown.

    Scores are logits; a discount of d makes the odds d times as large:  score + log d(now - last).
    """
    since = np.where(counts > 0, np.maximum(now - last, 0), FIRST)
    found = scores.clone()
    if resting.curve is not None:
        found += torch.from_numpy(np.log(resting.curve.at(since))).to(found)
    hidden = np.zeros(counts.shape, dtype=np.bool_)
    if resting.hide_shown:
        hidden |= counts > 0
    if resting.most_showings is not None:
        hidden |= counts >= resting.most_showings
    return found.masked_fill(torch.from_numpy(hidden).to(found.device), HIDDEN)
