"""Events from outside files in the codes of a model's own users and items."""

from dataclasses import dataclass, replace

import numpy as np

from towpath.data.interactions import COLUMNS, Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import UNKNOWN
from towpath.errors import DataError


@dataclass(frozen=True)
class Unknown:
    """What an outside file has that the training data do not; such rows are left out."""

    rows: int
    users: int
    items: int

    def sentence(self) -> str:
        """What was left out, for whoever asked for the evaluation."""
        return (
            f"{self.rows:,} rows are left out: {self.users:,} users and {self.items:,} items do not occur in "
            "the training data."
        )


def align(events: Interactions, train: Interactions) -> tuple[Interactions, Unknown]:
    """The events with the vocabularies and features of `train`, and what had to be left out.

    Rows stay in the order (user, time). Where the events have impressions, all of them are aligned.
    """
    rows = events.rows
    users, items = train.user_ids.match(rows.user_ids), train.item_ids.match(rows.item_ids)
    known = (users[rows.users] != UNKNOWN) & (items[rows.items] != UNKNOWN)
    unknown = Unknown(
        int((~known).sum()),
        len(np.unique(rows.users[users[rows.users] == UNKNOWN])),
        len(np.unique(rows.items[items[rows.items] == UNKNOWN])),
    )
    if not known.any():
        raise DataError(
            f"None of the {len(rows):,} rows has a user and an item that occur in the training data (first: "
            f"user {rows.user_ids.ids(rows.users[:1])[0]!r}, item "
            f"{rows.item_ids.ids(rows.items[:1])[0]!r}); check that ids are written in the same way."
        )
    kept = rows.where(known)
    kept = replace(
        kept,
        users=users[kept.users].astype(np.int32),
        items=items[kept.items].astype(np.int32),
        user_ids=train.user_ids,
        item_ids=train.item_ids,
        user_features=train.user_features,
        item_features=train.item_features,
    )
    order = np.argsort(kept.users, kind="stable")  # the order of ids of another file may be another
    columns = {name: getattr(kept, name) for name in COLUMNS}
    kept = replace(kept, **{name: c[order] for name, c in columns.items() if c is not None})
    return kept.positives, unknown


def with_test(split: Split, test: Interactions) -> Split:
    """The same split with an outside test part, in which pairs that occur in training stay."""
    outside = tuple(dict.fromkeys((*split.outside, "test")))
    return replace(split, test=test, description=f"{split.description}; test from a file", outside=outside)
