"""Who is shown what: a fixed top list, a soft choice or a random one, with the chance of every pair."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from towpath.errors import ConfigError

# Halvings of the interval in which a user's threshold lies; float32 has no more to give.
_HALVINGS = 50


@dataclass(frozen=True)
class Shown:
    """What was shown, ordered by user, and how likely that was."""

    users: NDArray[np.int64]  # (n,)
    items: NDArray[np.int64]  # (n,)
    propensity: NDArray[np.float32]  # (users, items) chance that the pair is shown; 0 where it cannot be


def show_lists(
    scores: NDArray[np.float32], length: int, exploration: float, draw: np.random.Generator
) -> Shown:
    """Lists of `length` items for every user: the top of the scores, then a share of random choices.

        propensity = 1 in the top list, else n_random / (what may be shown - top list)

    scores: (users, items), minus infinity where a pair may not be shown. With exploration 0 the same lists
    are shown whenever one asks; with 1 all is chance and the scores do not matter.
    """
    allowed = np.isfinite(scores).sum(axis=1)
    _refuse_short(int(allowed.min(initial=scores.shape[1])), length)
    n_random = round(exploration * length)
    fixed = length - n_random
    # One key ranks both kinds: the top list first, then everything else in random order.
    keys = draw.random(scores.shape, dtype=np.float32)
    chance = (n_random / np.maximum(1, allowed - fixed)).astype(np.float32)
    propensity = np.repeat(chance[:, None], scores.shape[1], axis=1)
    hidden = np.isneginf(scores)
    keys[hidden], propensity[hidden] = -1.0, 0.0
    if fixed:
        top = np.argpartition(-scores, fixed - 1, axis=1)[:, :fixed]
        np.put_along_axis(keys, top, 2.0, axis=1)
        np.put_along_axis(propensity, top, 1.0, axis=1)
    items = np.argpartition(-keys, length - 1, axis=1)[:, :length]
    return Shown(np.repeat(np.arange(len(scores)), length), items.ravel(), propensity)


def show_softly(
    scores: NDArray[np.float32], length: int, temperature: float, draw: np.random.Generator
) -> Shown:
    """Each item is shown or not by its own chance, `length` items per user on average.

        propensity = sigmoid((score - t_u) / temperature),   sum over items = length

    A low temperature is nearly the fixed top list, a high one nearly random.
    """
    _refuse_short(scores.shape[1] - 1, length)  # a sigmoid reaches one only at infinity
    logits = scores / np.float32(temperature)
    low, high = logits.min(axis=1) - 20, logits.max(axis=1) + 20
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        too_many = expit(logits - middle[:, None]).sum(axis=1) > length
        low, high = np.where(too_many, middle, low), np.where(too_many, high, middle)
    propensity = expit(logits - low[:, None])
    users, items = np.nonzero(draw.random(scores.shape, dtype=np.float32) < propensity)
    return Shown(users, items, propensity)


def _refuse_short(most: int, length: int) -> None:
    if not 0 < length <= most:
        raise ConfigError(
            f"Lists of {length:,} items must not exceed the {most:,} items that some user can be shown; show "
            "fewer or make more items."
        )
