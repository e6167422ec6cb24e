"""A random network over every pair of a user and an item."""

import math
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.rng import Rng

_WIDTHS = (32, 16)
# Pairs at once: what the hidden layer then holds fits into a core's cache.
_PAIRS = 1 << 15


def random_network(users: Tensor, items: Tensor, rng: Rng) -> NDArray[np.float32]:
    """The output of one random network for every pair, (n_users, n_items).

        w3' relu(W2' relu(W1' [p_u, q_i])),   all weights normal, no biases

    users: (n_users, d), items: (n_items, d). Without biases the output scales with the weights, so their
    variance does not matter if the output is standardised.
    """
    draw = rng.torch("world", "network")
    dim = users.shape[1]
    sizes = (2 * dim, *_WIDTHS, 1)
    first, second, last = (
        torch.randn(fan_in, out, generator=draw) * math.sqrt(2 / fan_in) for fan_in, out in pairwise(sizes)
    )
    # The first layer is a sum of what the user brings and what the item brings.
    by_user, by_item = users @ first[:dim], items @ first[dim:]
    scores = np.empty((len(users), len(items)), dtype=np.float32)
    step = max(1, _PAIRS // len(items))
    for start in range(0, len(users), step):
        some = by_user[start : start + step]
        hidden = (some[:, None] + by_item[None]).relu_().reshape(-1, _WIDTHS[0])
        scores[start : start + step] = ((hidden @ second).relu_() @ last).reshape(len(some), -1).numpy()
    return scores
