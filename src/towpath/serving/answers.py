"""What a recommender answers: lists, scores and neighbours, in the user's own ids."""

from dataclasses import dataclass
from typing import Literal

from towpath.data.vocabulary import Id
from towpath.evaluation.display import html_table

# Where a list comes from: the model as it was trained, the model for a user who is known by their history
# alone, or the most popular items of the training data.
How = Literal["model", "folded in", "popularity"]
FALLBACK: How = "popularity"


@dataclass(frozen=True)
class Recommendation:
    """A list for one user, best first.

    `fallback` is true where the model knows nothing of the user: the items are then the most popular of the
    training data and the scores are their counts. `how` says where the list comes from.
    """

    user: Id
    items: tuple[Id, ...]
    scores: tuple[float, ...]
    fallback: bool
    how: How = "model"

    def _repr_html_(self) -> str:
        rows = zip(range(1, len(self.items) + 1), self.items, self.scores, strict=True)
        return html_table(f"For user {self.user} ({self.how})", ("rank", "item", "score"), rows)


@dataclass(frozen=True)
class ItemScores:
    """The scores of the items that were asked about, in the order in which they were given."""

    user: Id
    items: tuple[Id, ...]
    scores: tuple[float, ...]
    fallback: bool
    how: How = "model"


@dataclass(frozen=True)
class Neighbours:
    """The items most like one item, nearest first."""

    item: Id
    items: tuple[Id, ...]
    scores: tuple[float, ...]

    def _repr_html_(self) -> str:
        rows = zip(range(1, len(self.items) + 1), self.items, self.scores, strict=True)
        return html_table(f"Like item {self.item}", ("rank", "item", "score"), rows)
