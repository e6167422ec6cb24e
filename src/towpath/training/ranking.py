"""What a model would show now: a snapshot of every user's ranking of items without an interaction."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.evaluation.ranking import HIDDEN, rows_per_block
from towpath.evaluation.scoring import inference_mode, score_catalogue
from towpath.kernels.ordering import best_of_rows, usable
from towpath.models.scorer import Scorer


@dataclass(frozen=True)
class RankingSnapshot:
    """The top of each user's ranking, over the whole catalogue, when it was computed.

    head: (users, depth) the best items without an interaction, best first.
    counts: (users,) how many entries of `head` are real; the rest of a row is meaningless.
    thresholds: (users,) score of the last item that is shown. A pair is shown if its score is no lower.
    """

    head: Tensor
    counts: Tensor
    thresholds: Tensor

    def draw(self, users: Tensor, count: int, depth: int, rng: torch.Generator) -> Tensor:
        """`count` items from the first `depth` of each user's ranking, with replacement: (b, count)."""
        deep = self.counts[users, None].clamp(1, depth)
        places = torch.rand(len(users), count, generator=rng) * deep
        flat = (users * self.head.shape[1])[:, None] + places.long()
        return self.head.view(-1).index_select(0, flat.view(-1)).view(flat.shape).long()


class LiveRanking:
    """A scorer's ranking as it was when last refreshed; training refreshes it every epoch or more often."""

    def __init__(self, scorer: Scorer, train: Interactions, *, shown: int, depth: int) -> None:
        self._scorer, self._train = scorer, train
        self._shown, self._depth = shown, depth
        self.snapshot: RankingSnapshot | None = None

    def refresh(self) -> RankingSnapshot:
        """Take the ranking anew."""
        self.snapshot = take_snapshot(self._scorer, self._train, shown=self._shown, depth=self._depth)
        return self.snapshot

    def current(self) -> RankingSnapshot:
        """The ranking when it was last taken."""
        return self.snapshot if self.snapshot is not None else self.refresh()


def take_snapshot(scorer: Scorer, train: Interactions, *, shown: int, depth: int) -> RankingSnapshot:
    """Rank the catalogue for every user: one matrix product and a partial sort per block of users.

    `shown` is the length of a list (the K of top-K), `depth` >= shown how much of the head is kept.
    """
    # Filled in place: small results kept from every block would pin the memory of the large ones.
    found = RankingSnapshot(
        torch.empty(train.n_users, min(depth, train.n_items), dtype=torch.int32),
        torch.empty(train.n_users, dtype=torch.long),
        torch.empty(train.n_users),
    )
    with inference_mode(scorer):
        step = rows_per_block(train.n_items)
        for start in range(0, train.n_users, step):
            _fill(found, scorer, train, np.arange(start, min(start + step, train.n_users)), shown)
    return found


def _fill(
    found: RankingSnapshot, scorer: Scorer, train: Interactions, users: NDArray[np.int64], shown: int
) -> None:
    """Rank the catalogue for one block of consecutive users."""
    block = slice(int(users[0]), int(users[-1]) + 1)
    scores, depth = score_catalogue(scorer, users, train.histories).cpu(), found.head.shape[1]
    values, columns = best_of_rows(scores, depth) if usable(scores) else scores.topk(depth, dim=1)
    counts = (values > HIDDEN).sum(1)
    # A user with fewer than `shown` items without an interaction is shown all of them.
    last = (counts.clamp(max=shown) - 1).clamp(min=0)
    found.head[block] = columns.to(torch.int32)
    found.counts[block] = counts
    found.thresholds[block] = values.gather(1, last[:, None])[:, 0]
