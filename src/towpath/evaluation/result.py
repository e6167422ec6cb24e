"""What an evaluation keeps: one value per user and metric; means are taken at the end."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from towpath.evaluation.display import html_table


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
        """Mean over users of each metric, then the metrics of the whole, as fractions."""
        return {name: float(values.mean()) for name, values in self.per_user.items()} | self.overall

    def _repr_html_(self) -> str:
        title = f"{self.protocol}, {self.on}, k = {self.k}, {len(self.users):,} users"
        return html_table(title, ("metric", "mean"), self.metrics().items())
