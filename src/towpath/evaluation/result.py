"""What an evaluation keeps: one value per user and metric; means are taken at the end."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Evaluation:
    """Per-user values of one scorer under one protocol, which is part of every number."""

    protocol: str
    on: str
    k: int
    users: NDArray[np.int64]  # (n,) codes of the users that were evaluated
    per_user: dict[str, NDArray[np.float64]]  # metric -> (n,)
    overall: dict[str, float]  # metrics of the lists as a whole, e.g. catalogue coverage
    users_left_out: int = 0  # have events in the evaluated part, but none in training or no unseen target

    def metrics(self) -> dict[str, float]:
        """Mean over users of each metric, then the metrics of the whole, as fractions.

        Users for whom a metric is no number, such as AUC without both labels, are left out of its mean.
        """
        return {name: mean_of_numbers(values) for name, values in self.per_user.items()} | self.overall


def mean_of_numbers(values: NDArray[np.float64]) -> float:
    """The mean of what is a number; NaN if nothing is."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else float("nan")


def named_by_k(metrics: Mapping[int, Mapping[str, NDArray[np.float64]]]) -> dict[str, NDArray[np.float64]]:
    """The metrics of one list length as they are; those of several with the length in their names.

    >>> list(named_by_k({5: {"hit": np.ones(1)}, 10: {"hit": np.ones(1)}}))
    ['hit@5', 'hit@10']
    """
    if len(metrics) == 1:
        return dict(next(iter(metrics.values())))
    names = dict.fromkeys(name for one in metrics.values() for name in one)
    return {f"{name}@{k}": one[name] for name in names for k, one in metrics.items() if name in one}
