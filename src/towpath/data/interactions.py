"""The one table that passes between stages."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.data.features import FeatureSchema, FeatureTable, SideSchema
from towpath.data.vocabulary import Vocabulary
from towpath.mapped import chunks, count_codes, empty_array

PADDING = -1
MISSING_TIME = int(np.iinfo(np.int64).min)
# The columns of Interactions that have one entry per row.
COLUMNS = (
    "users", "items", "times", "values", "propensities", "exposures", "labels", "positions", "requests",
    "policies",
)  # fmt: skip


@dataclass(frozen=True)
class Histories:
    """Each user's items in the order they came, packed end to end.

    The items of user u are `items[starts[u]:starts[u + 1]]`, oldest first.
    """

    starts: NDArray[np.int64]  # (users + 1,)
    items: NDArray[
        Any
    ]  # (n,) codes; or anything else that there is one of for each event, such as its weight

    @classmethod
    def packed(cls, lengths: NDArray[np.integer], items: NDArray[np.int32]) -> "Histories":
        """Histories of these lengths (users,), whose items (n,) lie end to end."""
        starts = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=starts[1:])
        return cls(starts, items)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """How many items each user has: (users,)."""
        return np.diff(self.starts)

    def pairs_of(self, users: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """All items of these users as (place in `users`, item), both (m,)."""
        counts = self.lengths[users]
        rows = np.repeat(np.arange(len(users)), counts)
        # Position within the packed array: start of the user's run plus the place within the run.
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, self.items[self.starts[users][rows] + within]

    def padded(self, users: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
        """The last `longest` items of each user, right-aligned, PADDING (-1) on the left: (b, h)."""
        return self.between(self.starts[users], self.starts[users + 1], longest)

    def padded_before(self, rows: NDArray[np.integer], longest: int) -> NDArray[np.int64]:
        """The last `longest` items that the user of each row took before that row, padded like `padded`.

        rows: (b,) places in the packed array, that is, rows of the interactions these histories belong to.
        """
        if longest == 0:
            return np.empty((len(rows), 0), dtype=np.int64)
        owners = np.searchsorted(self.starts, rows, side="right") - 1
        return self.between(self.starts[owners], rows, longest)

    def between(self, starts: NDArray[np.int64], ends: NDArray[np.integer], longest: int) -> NDArray[Any]:
        """The last `longest` items of each run [start, end) of the packed array, padded like `padded`."""
        counts = np.minimum(ends - starts, longest)
        back = np.arange(int(counts.max(initial=0)), 0, -1)  # (h,) h, h - 1, ..., 1 steps before the end
        real = back[None, :] <= counts[:, None]
        places = np.where(real, ends[:, None] - back[None, :], 0)
        return np.where(real, self.items[places], PADDING) if len(back) else places


@dataclass(frozen=True)
class Interactions:
    """Events as columns, in the order (user, time, row of the file).

    The order is part of the table: within a user, later rows came later, and ties in time keep the order of
    the file. `times` is None when the data have no time, in which case the order is that of the file alone.

    Models learn from tables of positives. Where the log also says what was shown but not clicked, a table of
    positives carries the whole log as `impressions`, whose `labels` tell the two apart.
    """

    users: NDArray[np.int32]  # (n,) codes into user_ids
    items: NDArray[np.int32]  # (n,) codes into item_ids
    user_ids: Vocabulary
    item_ids: Vocabulary
    times: NDArray[np.int64] | None = None  # (n,) any unit that sorts; MISSING_TIME where an event has none
    values: NDArray[np.float32] | None = None  # (n,) rating, count ...
    labels: NDArray[np.bool_] | None = None  # (n,) positive or not; None: every row is a positive
    exposures: NDArray[np.bool_] | None = None  # (n,) whether the item was shown, where logged
    positions: NDArray[np.int32] | None = None  # (n,) slot of the slate, from 1
    propensities: NDArray[np.float32] | None = None  # (n,) chance of having been shown, where known
    requests: NDArray[np.int64] | None = None  # (n,) code of the slate that the row was part of
    policies: NDArray[np.int32] | None = None  # (n,) code of the recommender that showed the row
    impressions: "Interactions | None" = None  # of positives: all that was shown, with labels
    user_features: FeatureTable | None = None  # one row for each user of the vocabulary
    item_features: FeatureTable | None = None  # one row for each item of the catalogue

    def __len__(self) -> int:
        return len(self.users)

    @property
    def n_users(self) -> int:
        """Size of the user vocabulary; not every user has events here."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """Size of the catalogue; not every item has events here."""
        return len(self.item_ids)

    def where(self, keep: NDArray[np.bool_]) -> "Interactions":
        """The rows where `keep` is true, in the same order and with the same vocabularies."""
        present = {name: getattr(self, name) for name in COLUMNS}
        return replace(self, **{n: c[keep] for n, c in present.items() if c is not None})

    @property
    def positives(self) -> "Interactions":
        """The positive rows, with this table as their impressions; itself where there are no labels."""
        # Never kept here: a table that holds itself, or what holds it, is freed only when Python looks for
        # circles, which it does not do for a few large arrays.
        if self.labels is None:
            return self
        return replace(self.where(self.labels), labels=None, impressions=self)

    @property
    def rows(self) -> "Interactions":
        """Every row of the log: the impressions of a table of positives, or the table itself."""
        return self if self.impressions is None else self.impressions

    @property
    def knows_unclicked(self) -> bool:
        """Whether the log says what was shown and not clicked."""
        labels = self.rows.labels
        return labels is not None and not bool(labels.all())

    def with_features(self, users: FeatureTable | None, items: FeatureTable | None) -> "Interactions":
        """The same events with these features."""
        return replace(self, user_features=users, item_features=items)

    @property
    def feature_schema(self) -> FeatureSchema | None:
        """What a model must know of the features to be built; None where there are none."""
        if self.user_features is None and self.item_features is None:
            return None
        sides = (self.user_features, self.item_features)
        return FeatureSchema(*(SideSchema() if side is None else side.schema for side in sides))

    def timed(self) -> "Interactions":
        """The rows that have a time."""
        if self.times is None:
            return self.where(np.zeros(len(self), dtype=np.bool_))
        return self.where(self.times != MISSING_TIME)

    def pair_keys(self) -> NDArray[np.int64]:
        """One number for each event's pair, user * n_items + item: (n,)."""
        keys = empty_array((len(self),), np.int64)
        for some in chunks(len(self)):
            keys[some] = self.users[some].astype(np.int64) * self.n_items + self.items[some]
        return keys

    @cached_property
    def histories(self) -> Histories:
        """Each user's items, oldest first."""
        return Histories.packed(count_codes(self.users, self.n_users), self.items)

    @cached_property
    def item_counts(self) -> NDArray[np.int64]:
        """How often each item of the catalogue occurs: (n_items,)."""
        return count_codes(self.items, self.n_items)
