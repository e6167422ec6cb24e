"""What a model would show now: a snapshot of the top of every user's ranking."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.device import device_of
from towpath.models.scorer import Scorer
from towpath.ranking.blocks import Hide
from towpath.ranking.scoring import score_blocks
from towpath.ranking.top_k import HIDDEN, top_k


@dataclass(frozen=True)
class RankingSnapshot:
    """The top of each user's ranking, over the whole catalogue, when it was computed.

    Hard negatives are drawn from it on the CPU, and there it stays; thresholds are on the scorer's device.

    head: (users, depth) the best items that are not hidden, best first.
    counts: (users,) how many entries of `head` are real; the rest of a row is meaningless.
    thresholds: (users,) score of the last item that is shown. A pair is shown if its score is no lower.
    """

    head: Tensor
    counts: Tensor
    thresholds: Tensor

    def draw(self, users: Tensor, count: int, depth: int, rng: torch.Generator) -> Tensor:
        """`count` items from the first `depth` of each user's ranking, with replacement: (b, count), CPU."""
        users = users.cpu()
        deep = self.counts[users, None].clamp(1, depth)
        places = torch.rand(len(users), count, generator=rng) * deep
        flat = (users * self.head.shape[1])[:, None] + places.long()
        return self.head.view(-1).index_select(0, flat.view(-1)).view(flat.shape).long()


class LiveRanking:
    """A scorer's ranking as it was when last refreshed; training refreshes it every epoch or more often."""

    def __init__(
        self, scorer: Scorer, train: Interactions, *, shown: int, depth: int, hide: Hide = "interacted"
    ) -> None:
        self._scorer, self._train = scorer, train
        self._shown, self._depth, self._hide = shown, depth, hide
        self.snapshot: RankingSnapshot | None = None

    def refresh(self) -> RankingSnapshot:
        """Take the ranking anew."""
        self.snapshot = take_snapshot(
            self._scorer, self._train, shown=self._shown, depth=self._depth, hide=self._hide
        )
        return self.snapshot

    def current(self) -> RankingSnapshot:
        """The ranking when it was last taken."""
        return self.snapshot if self.snapshot is not None else self.refresh()


def take_snapshot(
    scorer: Scorer, train: Interactions, *, shown: int, depth: int, hide: Hide = "interacted"
) -> RankingSnapshot:
    """Rank the catalogue for every user: one matrix product and a partial sort per block of users.

    `shown` is the length of a list (the K of top-K), `depth` >= shown how much of the head is kept.
    """
    found = RankingSnapshot(
        torch.empty(train.n_users, min(depth, train.n_items), dtype=torch.int32),
        torch.empty(train.n_users, dtype=torch.long),
        torch.empty(train.n_users, device=device_of(scorer)),
    )
    for rows, scores in score_blocks(scorer, np.arange(train.n_users), train.histories, hide=hide):
        values, columns = top_k(scores, found.head.shape[1])
        counts = (values > HIDDEN).sum(1)
        # A user with fewer than `shown` items that are not hidden is shown all of them.
        last = (counts.clamp(max=shown) - 1).clamp(min=0)
        found.head[rows] = columns.cpu().to(torch.int32)
        found.counts[rows] = counts.cpu()
        found.thresholds[rows] = values.gather(1, last[:, None])[:, 0]
    return found
