"""The price of distance that keeps the lists as near to the log as was asked for."""

import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.rng import Rng
from towpath.transport.impressions.deploy import Sum

_MOST_PAIRS, _MOST_USERS, _MOST_SHOWN = 4_000_000, 500, 20_000
# Prices that are tried, each a quarter more than the one before.
_LEAST, _FACTOR, _STEPS = 0.01, 1.25, 45


class Distance:
    """How far the lists of r + price * e are from the log, in the eyes of e.

        distance = (mean e(shown) - mean e(listed)) / (mean e(shown) - mean e(random))

    0: the lists are as much like the log as what was shown; 1: they are like random pairs of the catalogue.
    It falls as the price rises.
    """

    def __init__(self, train: Interactions, impressions: Interactions, k: int, rng: Rng) -> None:
        draw = rng.numpy("distance")
        known = train.histories.lengths.nonzero()[0]
        count = min(len(known), _MOST_USERS, max(1, _MOST_PAIRS // train.n_items))
        self._users = torch.from_numpy(draw.choice(known, count, replace=False)).long()
        self._k = min(k, train.n_items)
        self._clicked = torch.zeros(count, train.n_items, dtype=torch.bool)
        places, items = train.histories.pairs_of(self._users.numpy())
        self._clicked[torch.from_numpy(places), torch.from_numpy(items).long()] = True
        rows = draw.permutation(len(impressions))[:_MOST_SHOWN]
        self._shown = tuple(torch.from_numpy(c[rows]).long() for c in (impressions.users, impressions.items))

    def price(self, relevance: Sum, likeness: Sum, farthest: float) -> float:
        """The smallest price at which the distance is no more than `farthest`; the largest if it never is."""
        r, e = self._catalogue(relevance), self._catalogue(likeness)
        users, items = self._shown
        shown = (likeness.users[users] * likeness.items[items]).sum(1) + likeness.item_bias[items]
        near, far = float(shown.mean()), float(e.mean())
        price = 0.0
        for step in range(_STEPS):
            scores = (r + price * e).masked_fill(self._clicked, -torch.inf)
            listed = float(e.gather(1, scores.topk(self._k).indices).mean())
            if near - listed <= farthest * (near - far):
                break
            price = _LEAST * _FACTOR**step
        return price

    def _catalogue(self, scores: Sum) -> Tensor:
        """The scores of the users with every item, but for what is the user's alone: (n, items)."""
        return scores.users[self._users] @ scores.items.T + scores.item_bias
