"""Whether learning from its own log makes an arm better: its models on the same users and candidates.

What users have clicked is not shown again, so the lists of a later week are drawn from what is left, and
their clicks say little about the model. Here every model that was served is evaluated on one task:
lists for the users of its arm, out of the same candidates, by the clicks to expect in truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from towpath.ranking.scoring import score_blocks
from towpath.serving.artifact import load_artifact

WEEK = 7  # days


@dataclass(frozen=True)
class Candidates:
    """What may be shown to whom: (users, items), at the loop's start and at its end."""

    start: NDArray[np.bool_]
    end: NDArray[np.bool_]


@dataclass(frozen=True)
class WeeklyModels:
    """Expected clicks on a list, mean over the days of each week, of the models served on them."""

    start: list[float]  # lists out of what could be shown before the first day
    end: list[float]  # out of what is left after the last one

    @property
    def better(self) -> bool:
        """Whether the models of the last week beat those of the first on both sets of candidates."""
        return self.start[-1] > self.start[0] and self.end[-1] > self.end[0]


@dataclass(frozen=True)
class SharedTask:
    """The task: true relevance (users, items), what may be shown, and how long the lists are."""

    relevance: NDArray[np.float32]
    candidates: Candidates
    k: int

    def weekly(self, served: Sequence[Path], users: NDArray[np.int64]) -> WeeklyModels:
        """Of the models of one arm; `served`: the folder of the model of every day."""
        values = {folder: self._values(folder, users) for folder in dict.fromkeys(served)}
        days = np.array([values[folder] for folder in served])  # (days, 2)
        weeks = [days[at : at + WEEK].mean(axis=0) for at in range(0, len(days), WEEK)]
        return WeeklyModels(*(column.tolist() for column in np.transpose(weeks)))

    def _values(self, folder: Path, users: NDArray[np.int64]) -> tuple[float, float]:
        artifact = load_artifact(folder)
        scores = np.empty((len(users), self.relevance.shape[1]), dtype=np.float32)
        for rows, block in score_blocks(artifact.scorer, users, artifact.history.histories, hide="nothing"):
            scores[rows] = block.cpu().numpy()
        relevance = self.relevance[users]
        start, end = (
            expected_clicks(scores, relevance, allowed[users], self.k)
            for allowed in (self.candidates.start, self.candidates.end)
        )
        return start, end


def expected_clicks(
    scores: NDArray[np.float32], relevance: NDArray[np.float32], allowed: NDArray[np.bool_], k: int
) -> float:
    """Mean over users of the summed relevance of the k best-scored items that are allowed.

    All arrays: (users, items). A user with fewer than k items left gets all of them.
    """
    lists = np.argsort(np.where(allowed, -scores, np.inf), axis=1, kind="stable")[:, :k]
    shown = np.take_along_axis(np.where(allowed, relevance, 0), lists, axis=1)
    return float(shown.sum(axis=1, dtype=np.float64).mean())


def served_on(day: int, nights: Mapping[int, Path]) -> Path:
    """The model of a day: the latest one that was trained before it."""
    return nights[max(night for night in nights if night <= day)]
