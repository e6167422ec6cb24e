"""What a model would show now: a snapshot of the top of every user's ranking."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
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
    by_item: whether draws look at which items are at the top, not at their order there.
    """

    head: Tensor
    counts: Tensor
    thresholds: Tensor
    by_item: bool = False

    def draw(self, users: Tensor, count: int, depth: int, rng: torch.Generator) -> Tensor:
        """`count` items from the first `depth` of each user's ranking, with replacement: (b, count), CPU."""
        users = users.cpu()
        deep = self.counts[users, None].clamp(1, depth)
        if self.by_item:
            top = self.head[users, :depth].numpy()
            keys = torch.randint(1 << 32, (len(users), count), generator=rng).numpy().astype(np.uint32)
            chosen = [choose_by_hash(top, deep.numpy(), key) for key in keys.T]
            return torch.from_numpy(np.stack(chosen, axis=1).astype(np.int64))
        places = torch.rand(len(users), count, generator=rng) * deep
        flat = (users * self.head.shape[1])[:, None] + places.long()
        return self.head.view(-1).index_select(0, flat.view(-1)).view(flat.shape).long()


def choose_by_hash(
    items: NDArray[np.int32], counts: NDArray[np.int64], keys: NDArray[np.uint32]
) -> NDArray[np.int32]:
    """One of the first counts[r] different items of each row (b, n): the one whose hash is lowest.

    For a random key every item is as likely. The order of the items does not matter, and where another item
    takes the place of one, only that one's share of the keys chooses anything else. So draws hardly change
    with scores that differ by rounding, as those of several processes do.
    """
    # Each line maps 32-bit numbers one to one (the constants are odd), so that no two items tie.
    hashes = items.view(np.uint32) * np.uint32(0x9E3779B1) ^ keys[:, None]
    hashes ^= hashes >> np.uint32(16)
    hashes *= np.uint32(0x85EBCA6B)
    hashes ^= hashes >> np.uint32(13)
    hashes *= np.uint32(0xC2B2AE35)
    hashes ^= hashes >> np.uint32(16)
    hashes[np.arange(items.shape[1]) >= counts] = np.iinfo(np.uint32).max
    chosen: NDArray[np.int32] = np.take_along_axis(items, hashes.argmin(1)[:, None], axis=1)[:, 0]
    return chosen


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
    Models of sequences are drawn for by item: to look at the whole top costs little next to their steps, and
    the rounding of a few deep layers is enough to change the order of many items.
    """
    found = RankingSnapshot(
        torch.empty(train.n_users, min(depth, train.n_items), dtype=torch.int32),
        torch.empty(train.n_users, dtype=torch.long),
        torch.empty(train.n_users, device=device_of(scorer)),
        by_item=scorer.trains_on_sequences,
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
