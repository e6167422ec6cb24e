"""Slates with the chance of every slot.

The propensity of a slot is the chance that its item came there, given the items above it; their product is
the chance of the slate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.serving.http.settings import Exploration

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Slate:
    """Item codes, first slot first, with their scores and propensities."""

    items: list[int]
    scores: list[float]
    propensities: list[float]


def explore(
    scores: Floats, best: Slate, k: int, exploration: Exploration, draw: np.random.Generator
) -> Slate:
    """A slate of k drawn around the best one.

    scores: (items,), minus infinity for what may not be shown. best: the k best of them, or all there are.
    """
    if exploration.epsilon:
        return _epsilon_greedy(scores, best, exploration.epsilon, draw)
    if exploration.softmax:
        return _softmax(scores, min(k, len(best.items)), exploration.softmax, draw)
    return best


def _epsilon_greedy(scores: Floats, best: Slate, epsilon: float, draw: np.random.Generator) -> Slate:
    """Each slot gets the best item that is left, or, with chance epsilon, any that is left.

    p = (1 - epsilon) [it is the best one left] + epsilon / (how many are left)
    """
    allowed = np.flatnonzero(scores > -np.inf)
    taken: list[int] = []
    chances: list[float] = []
    for slot in range(len(best.items)):
        # At most `slot` of the best have been taken, so one of the first slot + 1 is left.
        first = next(item for item in best.items if item not in taken)
        item = first
        if draw.random() < epsilon:
            item = taken[0] if taken else int(draw.choice(allowed))
            while item in taken:
                item = int(draw.choice(allowed))
        taken.append(item)
        chances.append((1 - epsilon) * (item == first) + epsilon / (len(allowed) - slot))
    return Slate(taken, [float(scores[item]) for item in taken], chances)


def _softmax(scores: Floats, k: int, temperature: float, draw: np.random.Generator) -> Slate:
    """Items without replacement, each slot in proportion to exp(score / temperature) of what is left."""
    logits = scores.astype(np.float64) / temperature
    weights = np.exp(logits - logits.max())
    taken: list[int] = []
    chances: list[float] = []
    for _ in range(k):
        total = weights.sum()
        if total == 0:  # all that is left is too unlikely for a float: by score, then
            rest = np.where(np.isin(np.arange(len(scores)), taken), -np.inf, logits)
            weights = np.exp(rest - rest.max())
            total = weights.sum()
        item = int(np.searchsorted(np.cumsum(weights), draw.random() * total, side="right"))
        item = min(item, len(weights) - 1)
        taken.append(item)
        chances.append(float(weights[item] / total))
        weights[item] = 0
    return Slate(taken, [float(scores[item]) for item in taken], chances)
