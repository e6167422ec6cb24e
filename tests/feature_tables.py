"""Side features for the small interactions of tests, made on the spot."""

import numpy as np

from towpath.data.features import FIRST_VALUE, MISSING, UNSEEN, Feature, FeatureTable, Labels, pack
from towpath.data.interactions import Interactions
from towpath.data.split import Split


def small_table(rows: int, seed: int = 0) -> FeatureTable:
    """A category (one row in seven has none), up to three of five tags, and a number with gaps."""
    rng = np.random.default_rng(seed)
    groups = np.flatnonzero(np.arange(rows) % 7)
    tags = np.unique(rng.integers(0, 5, size=(rows, 3)) + 5 * np.arange(rows)[:, None])
    amounts = np.where(np.arange(rows) % 5 == 0, np.nan, rng.normal(10, 3, size=rows))
    features = (
        Feature("group", "categorical", ("even", "odd")),
        Feature("amount", "numeric"),
        Feature("tags", "multivalued", tuple("abcde")),
    )
    labels = [Labels(groups, groups % 2), Labels(tags // 5, tags % 5)]
    return pack(features, rows, labels, [amounts]).fitted(np.ones(rows, dtype=np.bool_))


def with_features(split: Split) -> Split:
    """The same split with features of users and of items."""
    users, items = small_table(split.train.n_users, 1), small_table(split.train.n_items, 2)

    def add(part: Interactions) -> Interactions:
        return part.with_features(users, items)

    return Split(add(split.train), add(split.validation), add(split.test), split.description)


def values_of(table: FeatureTable, row: int, column: int) -> list[str]:
    """What a bag holds, in words."""
    label = table.labels[column]
    names = {MISSING: "-", UNSEEN: "?"} | dict(enumerate(label.values, start=FIRST_VALUE))
    bag = row * len(table.labels) + column
    return sorted(names[int(code)] for code in table.codes[table.starts[bag] : table.starts[bag + 1]])
