"""Whether learning from its own log makes an arm better: its models on the same users and candidates.

What users have clicked is not shown again, so the lists of a later week are drawn from what is left, and
their clicks say little about the model. Here every model that was served is evaluated on one task:
lists for the users of its arm, out of the same candidates, by the clicks to expect in truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.ranking.scoring import score_blocks
from towpath.serving.artifact import load_artifact
from towpath.stats.estimate import Estimate
from towpath.stats.intervals import normal_interval

WEEK = 7  # days
Clicks = NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """What may be shown to whom: (users, items), at the loop's start and at its end."""

    start: NDArray[np.bool_]
    end: NDArray[np.bool_]


@dataclass(frozen=True)
class WeeklyValues:
    """Expected clicks on a list by the models of each week, on one set of candidates."""

    weeks: list[float]  # means over users and the days of the week
    gain: Estimate  # of the last week over the first, paired by user


@dataclass(frozen=True)
class WeeklyModels:
    """The models of an arm, week by week."""

    start: WeeklyValues  # lists out of what could be shown before the first day
    end: WeeklyValues  # out of what is left after the last one

    @property
    def better(self) -> bool:
        """Whether the models of the last week beat those of the first on both sets of candidates."""
        return self.start.gain.mean > 0 and self.end.gain.mean > 0

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """Week by week, and the gains with their intervals."""
        gains = {f"{name}_gain": _ends(one.gain) for name, one in (("start", self.start), ("end", self.end))}
        return {"start": self.start.weeks, "end": self.end.weeks, "better": self.better, **gains}


def _ends(gain: Estimate) -> list[float]:
    return [gain.mean, gain.low, gain.high]


@dataclass(frozen=True)
class SharedTask:
    """The task: true relevance (users, items), what may be shown, and how long the lists are."""

    relevance: NDArray[np.float32]
    candidates: Candidates
    k: int

    def weekly(self, served: Sequence[Path], users: NDArray[np.int64]) -> WeeklyModels:
        """Of the models of one arm; `served`: the folder of the model of every day."""
        values = {folder: self._values(folder, users) for folder in dict.fromkeys(served)}
        days = np.array([values[folder] for folder in served])  # (days, 2, users)
        weeks = np.array([days[at : at + WEEK].mean(axis=0) for at in range(0, len(days), WEEK)])
        return WeeklyModels(*(_summed(weeks[:, task]) for task in range(2)))

    def _values(self, folder: Path, users: NDArray[np.int64]) -> Clicks:
        """Of one model, for both sets of candidates: (2, users)."""
        artifact = load_artifact(folder)
        scores = np.empty((len(users), self.relevance.shape[1]), dtype=np.float32)
        for rows, block in score_blocks(artifact.scorer, users, artifact.history.histories, hide="nothing"):
            scores[rows] = block.cpu().numpy()
        relevance = self.relevance[users]
        both = (self.candidates.start, self.candidates.end)
        return np.array([expected_clicks(scores, relevance, allowed[users], self.k) for allowed in both])


def _summed(weeks: Clicks) -> WeeklyValues:
    """weeks: (weeks, users)."""
    return WeeklyValues(weeks.mean(axis=1).tolist(), normal_interval(weeks[-1] - weeks[0]))


def expected_clicks(
    scores: NDArray[np.float32], relevance: NDArray[np.float32], allowed: NDArray[np.bool_], k: int
) -> Clicks:
    """For each user, the summed relevance of the k best-scored items that are allowed: (users,).

    All arrays: (users, items). A user with fewer than k items left gets all of them.
    """
    lists = np.argsort(np.where(allowed, -scores, np.inf), axis=1, kind="stable")[:, :k]
    shown = np.take_along_axis(np.where(allowed, relevance, 0), lists, axis=1)
    return shown.sum(axis=1, dtype=np.float64)


def served_on(day: int, nights: Mapping[int, Path]) -> Path:
    """The model of a day: the latest one that was trained before it."""
    return nights[max(night for night in nights if night <= day)]
