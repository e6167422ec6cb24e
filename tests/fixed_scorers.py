"""Scorers whose scores are written down, and splits made of pairs, for tests of the evaluation."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import Vocabulary
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.rng import Rng

Pair = tuple[int, int]


class Fixed(Scorer):
    """score(u, i) = table[u, i]."""

    settings_type = Settings

    def __init__(self, table: np.ndarray | Tensor) -> None:
        super().__init__(Settings(), Sizes(*table.shape))
        self.register_buffer("table", torch.as_tensor(table))
        self.seen_histories: list[Tensor] = []

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Nothing to learn."""

    def score(self, context: Context, items: Tensor) -> Tensor:
        self.seen_histories.append(context.histories)
        return self.table[context.users[:, None], items]


class Constant(Fixed):
    """The same score for everything, as a view of a single number."""

    def score(self, context: Context, items: Tensor) -> Tensor:
        return self.table[:1, :1].expand(len(context.users), items.shape[1])


def events(
    pairs: Sequence[Pair], users: int, items: int, item_ids: Sequence[int | str] | None = None
) -> Interactions:
    """These (user, item) pairs, which must be in the order of users."""
    columns = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    return Interactions(
        users=columns[:, 0],
        items=columns[:, 1],
        user_ids=Vocabulary(pa.array([f"u{n}" for n in range(users)])),
        item_ids=Vocabulary(pa.array(item_ids or [f"i{n}" for n in range(items)])),
    )


def split_of(
    train: Sequence[Pair], validation: Sequence[Pair], test: Sequence[Pair], *, users: int, items: int
) -> Split:
    """A split of these pairs."""
    return Split(*(events(part, users, items) for part in (train, validation, test)), "by hand")
