"""Lists for users and neighbours of items, in the user's own ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from towpath.data.vocabulary import UNKNOWN, Id
from towpath.errors import ConfigError, DataError
from towpath.models.capabilities import with_item_similarity
from towpath.models.popularity import Popularity, PopularitySettings
from towpath.models.scorer import Scorer, Sizes
from towpath.ranking.blocks import NOTHING
from towpath.ranking.lists import TopK, top_k_lists
from towpath.ranking.scoring import inference_mode
from towpath.ranking.top_k import HIDDEN, top_k
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
        past = self.artifact.history
        known = (codes != UNKNOWN) & past.trained[codes]
        lists = TopK(np.empty((len(users), k), np.int64), np.empty((len(users), k), np.float32))
        for some, scorer in ((known, self.artifact.scorer), (~known, self._fallback())):
            found = top_k_lists(scorer, codes[some], past.histories, k)
            lists.items[some], lists.scores[some] = found.items, found.scores
        return [
            Recommendation(user, *answer, fallback=not sure)
            for user, answer, sure in zip(users, self._in_ids(lists), known.tolist(), strict=True)
        ]

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
        values, items = (t.cpu() for t in top_k(scores, k))
        [(ids, likeness)] = self._in_ids(TopK(items.where(values > HIDDEN, NOTHING).numpy(), values.numpy()))
        return Neighbours(item, ids, likeness)

    def _fallback(self) -> Scorer:
        """Each item's count of training events, for whoever the scorer knows nothing of."""
        counts = self.artifact.history.item_counts
        fallback = Popularity(PopularitySettings(), Sizes(len(self.artifact.user_ids), len(counts)))
        fallback.counts.copy_(torch.from_numpy(counts))
        return fallback

    def _in_ids(self, lists: TopK) -> list[tuple[tuple[Id, ...], tuple[float, ...]]]:
        """Ids and scores of each list; a list that ended early is as long as it is."""
        width = lists.items.shape[1]
        ids = self.artifact.item_ids.ids(np.maximum(lists.items, 0).ravel())
        return [
            (tuple(ids[row * width : row * width + length]), tuple(lists.scores[row, :length].tolist()))
            for row, length in enumerate(lists.lengths.tolist())
        ]

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
