"""All parts of a split together, for a model that goes into production."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from towpath.data.interactions import Interactions
from towpath.data.joining import join
from towpath.data.split import Split


def whole_split(split: Split) -> Split:
    """The same events, all of them for training; a test part that came from a file is left out.

    Validation and test are empty. Features keep the codes that they had.
    """
    parts = [split.train, split.validation]
    if "test" not in split.outside:
        parts.append(split.test)
    return all_for_training(joined(parts), f"everything is for training ({split.description})")


def all_for_training(train: Interactions, description: str) -> Split:
    """A split without validation and test parts."""
    none = train.rows.where(np.zeros(len(train.rows), dtype=np.bool_)).positives
    return Split(train, none, none, description)


def joined(parts: Sequence[Interactions]) -> Interactions:
    """The positives of all parts, with the impressions of all; a part without any has positives alone."""
    if all(part.impressions is None for part in parts):
        return reduce(join, parts)
    return reduce(join, [_labelled(part) for part in parts]).positives


def _labelled(part: Interactions) -> Interactions:
    """All rows of a part, each with its label."""
    if part.impressions is not None:
        return part.impressions
    return replace(part, labels=np.ones(len(part), dtype=np.bool_))
