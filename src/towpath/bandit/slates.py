"""Slates: what a policy that fills several positions at once would have earned per request.

Two readings of how users look at a slate (Li et al. 2018; McInerney et al. 2020):

- `independent`: a click at a position depends on the item there alone. Each position is weighted by its own
  w_k, and the request's value is sum_k w_k r_k: many requests count, little variance.
- `cascade`: users read from the top, so a click at k depends on everything above it. Position k is weighted
  by w_1 w_2 ... w_k (reward interaction IPS), which is right in more worlds and varies much more.
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from towpath.stats.intervals import RatioRows

Values = NDArray[np.float64]
Reading = Literal["independent", "cascade"]
READINGS = get_args(Reading)


def slate_weights(weights: Values, reading: Reading) -> Values:
    """The weight of the reward at each position, from position-wise weights (requests, positions).

    >>> slate_weights(np.array([[2.0, 0.5, 3.0]]), "cascade")
    array([[2., 1., 3.]])
    """
    return weights if reading == "independent" else np.asarray(np.cumprod(weights, axis=1), dtype=np.float64)


def slate_ips(weights: Values, rewards: Values, reading: Reading) -> RatioRows:
    """Per-request values sum_k W_k r_k; rewards: (requests, positions), zero where a slate has ended.

    Unbiased if propensities of each position are given what stands above it, and the reading is right.
    """
    values = (slate_weights(weights, reading) * rewards).sum(axis=1)
    return RatioRows(np.zeros(len(values)), values, np.ones(len(values)))


def slate_snips(weights: Values, rewards: Values, reading: Reading) -> Values:
    """The self-normalised reward of each position, (positions,): their sum is the slate's value."""
    whole = slate_weights(weights, reading)
    totals = whole.sum(axis=0)
    earned = (whole * rewards).sum(axis=0)
    return np.divide(earned, totals, out=np.zeros(len(totals)), where=totals > 0)


def to_slates(
    values: Values,
    requests: NDArray[np.int64],
    positions: NDArray[np.int64],
    shape: tuple[int, int],
    empty: float,
) -> Values:
    """Rows (n,) as a table of this shape (requests, positions), `empty` where a request has no row.

    requests: (n,) codes 0.. of each row's request. positions: (n,) from 0. Empty places take weight 1 and
    reward 0.
    """
    table = np.full(shape, empty)
    table[requests, positions] = values
    return table
