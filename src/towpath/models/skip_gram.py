"""Item vectors from the neighbours of items: skip-gram with negative sampling over user histories."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Histories, Interactions
from towpath.rng import Rng

# Events that are centres of one step, and negatives that they share: one matrix product scores them all.
_CENTRES, _POOL = 1024, 256
_PAD = -1


@dataclass(frozen=True)
class SkipGram:
    """How item vectors are learned from histories."""

    width: int = 32
    window: int = 10
    negatives: int = 5
    epochs: int = 10
    learning_rate: float = 0.5


@dataclass(frozen=True)
class ItemVectors:
    """What skip-gram learns of each item: `vectors` (n, d) as a centre, `contexts` (n, d) as a neighbour."""

    vectors: Tensor
    contexts: Tensor


def learn_item_vectors(train: Interactions, how: SkipGram, rng: Rng) -> ItemVectors:
    """Vectors of all items such that items with the same neighbours in histories lie in the same direction.

    For every event t and every event s of the same user at most `window` places away,

        loss = -log sigma(<v_t, c_s>) - negatives * E_j[log sigma(-<v_t, c_j>)],   P(j) ~ count(j)^0.75

    descended by Adagrad with one step size for each vector. The expectation is a mean over a pool that the
    centres of a step share, which is one matrix product instead of a gather for every pair. Gradients are
    written out: they are two lines, and the step needs no graph.
    """
    start = rng.torch("initialise", "skip-gram")
    vectors = (torch.rand(train.n_items, how.width, generator=start) - 0.5) / how.width
    learner = _Learner(ItemVectors(vectors, torch.zeros_like(vectors)), how)
    shares = np.cumsum(train.item_counts**0.75)
    for epoch in range(how.epochs):
        generator = rng.numpy("initialise", "skip-gram", epoch)
        order = generator.permutation(len(train))
        for place in range(0, len(order), _CENTRES):
            rows = order[place : place + _CENTRES]
            pool = np.searchsorted(shares, generator.random(_POOL) * shares[-1], side="right")
            company = torch.from_numpy(neighbours(train.histories, rows, how.window))
            learner.step(torch.from_numpy(train.items[rows]).long(), company, torch.from_numpy(pool))
    return learner.found


def neighbours(histories: Histories, rows: NDArray[np.int64], window: int) -> NDArray[np.int64]:
    """Items at most `window` places before or after each row in the same history, -1 where there are none.

    rows: (b,) places in the packed array. Returns (b, 2 window).
    """
    offsets = np.concatenate([np.arange(-window, 0), np.arange(1, window + 1)])
    owners = np.searchsorted(histories.starts, rows, side="right") - 1
    places = rows[:, None] + offsets
    inside = (places >= histories.starts[owners, None]) & (places < histories.starts[owners + 1, None])
    return np.where(inside, histories.items[np.where(inside, places, 0)], _PAD)


class _Learner:
    """The vectors, and the squared gradients that Adagrad divides by."""

    def __init__(self, found: ItemVectors, how: SkipGram) -> None:
        self.found, self._how = found, how
        self._past = {name: torch.zeros(len(found.vectors), 1) for name in ("vectors", "contexts")}

    def step(self, centres: Tensor, company: Tensor, pool: Tensor) -> None:
        """One step from centres (b,), their neighbours (b, n) with -1 as padding, and negatives (m,)."""
        centre = self.found.vectors[centres]  # (b, d)
        near = self.found.contexts[company.clamp(min=0)]  # (b, n, d)
        far = self.found.contexts[pool]  # (m, d)
        real = (company != _PAD).float()
        # Derivatives of the loss by the scores of the neighbours (b, n) and of the pool (b, m).
        pull = (torch.sigmoid(torch.einsum("bd,bnd->bn", centre, near)) - 1) * real
        push = torch.sigmoid(centre @ far.T) * (real.sum(1, keepdim=True) * self._how.negatives / len(pool))
        to_centre = torch.einsum("bn,bnd->bd", pull, near) + push @ far
        to_near = (pull[:, :, None] * centre[:, None]).flatten(0, 1)
        self._descend("vectors", centres, to_centre)
        rows = torch.cat([company.clamp(min=0).flatten(), pool])
        self._descend("contexts", rows, torch.cat([to_near, push.T @ centre]))

    def _descend(self, name: str, rows: Tensor, gradients: Tensor) -> None:
        """Adagrad on these rows (r,) of a table, whose gradients (r, d) are summed where a row repeats."""
        table, past = getattr(self.found, name), self._past[name]
        touched, places = torch.unique(rows, return_inverse=True)
        total = torch.zeros(len(touched), gradients.shape[1]).index_add_(0, places, gradients)
        past[touched] += total.square().mean(1, keepdim=True)
        table[touched] -= self._how.learning_rate * total / (past[touched].sqrt() + 1e-8)
