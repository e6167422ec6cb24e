"""Lists for users and neighbours of items, in the user's own ids."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.vocabulary import UNKNOWN, Id
from towpath.errors import ConfigError, DataError
from towpath.evaluation.ranking import HIDDEN, rows_per_block, top_k
from towpath.evaluation.scoring import hide, inference_mode, score_catalogue, seen_indices
from towpath.models.capabilities import with_item_similarity
from towpath.models.scorer import Scorer
from towpath.serving.artifact import Artifact, load_artifact
from towpath.serving.run import Run

FALLBACK = "popularity"


@dataclass(frozen=True)
class Recommendation:
    """A list for one user, best first.

    `fallback` is true where the model knows nothing of the user: the items are then the most popular of the
    training data and the scores are their counts.
    """

    user: Id
    items: tuple[Id, ...]
    scores: tuple[float, ...]
    fallback: bool


@dataclass(frozen=True)
class Neighbours:
    """The items most like one item, nearest first."""

    item: Id
    items: tuple[Id, ...]
    scores: tuple[float, ...]


class Recommender:
    """Answers from an artifact alone; ids in and out are the user's own."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact

    def recommend(self, user: Id, k: int = 10) -> Recommendation:
        """The k best items for this user, those in their history left out."""
        return self.recommend_many([user], k)[0]

    def recommend_many(self, users: Sequence[Id], k: int = 10) -> list[Recommendation]:
        """The k best items for each of these users, those in their own history left out.

        A user who has had nearly everything gets a shorter list.
        """
        self._check(k)
        codes = self.artifact.user_ids.codes(users)
        answers: list[Recommendation] = []
        for block in self._blocks(len(users)):
            answers += self._answers(users[block], codes[block], k)
        return answers

    def similar(self, item: Id, k: int = 10) -> Neighbours:
        """The k items most like this one, without itself."""
        self._check(k)
        code = self.artifact.item_ids.code(item)
        if code == UNKNOWN:
            raise DataError(
                f"There is no item {item!r} among the {len(self.artifact.item_ids):,} items of the data "
                f"(first: {self.artifact.item_ids.ids(np.array([0]))[0]!r}); give one of its ids."
            )
        alike = with_item_similarity(self.artifact.scorer)
        with inference_mode(self.artifact.scorer):
            scores = alike.item_similarity(torch.tensor([code])).clone()
        scores[0, code] = HIDDEN
        [(items, values)] = self._lists(scores, k)
        return Neighbours(item, items, values)

    def _answers(self, users: Sequence[Id], codes: NDArray[np.int64], k: int) -> list[Recommendation]:
        """One answer per user of a block."""
        known = (codes != UNKNOWN) & self.artifact.history.trained[codes]
        scores = self._fallback(codes)
        if known.any():
            with inference_mode(self.artifact.scorer):
                scores[torch.from_numpy(known)] = score_catalogue(
                    self.artifact.scorer, codes[known], self.artifact.history.histories
                )
        lists = self._lists(scores, k)
        return [
            Recommendation(user, *found, fallback=not sure)
            for user, found, sure in zip(users, lists, known.tolist(), strict=True)
        ]

    def _fallback(self, codes: NDArray[np.int64]) -> Tensor:
        """Each item's count of training events, for every user, but for what they have had: (b, items)."""
        past = self.artifact.history
        counts = torch.from_numpy(past.item_counts).to(torch.float32).repeat(len(codes), 1)
        return hide(counts, seen_indices(past.histories, codes, len(past.item_counts)))

    def _lists(self, scores: Tensor, k: int) -> list[tuple[tuple[Id, ...], tuple[float, ...]]]:
        """Ids and scores of the k best of each row; what is hidden is never listed."""
        values, best = top_k(scores, k)
        lengths = (values > HIDDEN).sum(1).tolist()
        ids = self.artifact.item_ids.ids(best.flatten().numpy())
        return [
            (tuple(ids[row * k : row * k + length]), tuple(values[row, :length].tolist()))
            for row, length in enumerate(lengths)
        ]

    def _blocks(self, users: int) -> Iterator[slice]:
        step = rows_per_block(len(self.artifact.item_ids))
        return (slice(start, start + step) for start in range(0, users, step))

    def _check(self, k: int) -> None:
        items = len(self.artifact.item_ids)
        if not 0 < k <= items:
            raise ConfigError(
                f"k must lie between 1 and the {items:,} items of the catalogue, and {k:,} was asked for."
            )


def load(folder: str | Path, models: Sequence[type[Scorer]] = ()) -> Recommender:
    """The recommender of a run, or of an artifact folder copied out of one.

    `models` are classes of the caller's own; without one, only registered models are loaded.
    """
    path = Path(folder)
    if (path / "run.json").is_file():
        return Recommender(Run(path, models).artifact)
    return Recommender(load_artifact(path, models))
