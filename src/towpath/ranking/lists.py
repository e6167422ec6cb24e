"""The list that a model would show each user: the best of the catalogue."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Histories
from towpath.models.scorer import Scorer
from towpath.ranking.blocks import NOTHING, Block, Hide
from towpath.ranking.resting import Rest
from towpath.ranking.scoring import score_blocks
from towpath.ranking.top_k import HIDDEN, top_k


@dataclass(frozen=True)
class TopK:
    """A list of k items for each of n users, best first; short lists are filled up."""

    items: NDArray[np.int64]  # (n, k) codes; NOTHING where a list has ended
    scores: NDArray[np.float32]  # (n, k); HIDDEN where a list has ended

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many items each list has: (n,)."""
        return np.count_nonzero(self.items != NOTHING, axis=1)


def top_k_lists(
    scorer: Scorer,
    users: NDArray[np.int64],
    histories: Histories,
    k: int,
    *,
    hide: Hide = "interacted",
    candidates: NDArray[np.int64] | None = None,
    rest: Rest | None = None,
) -> TopK:
    """The k best items of the catalogue, or of `candidates` (c,), for each user (n,), without what is hidden.

    `rest` hides or discounts what was shown lately. A user from whom nearly everything is hidden gets a
    shorter list; so does everyone if k is more than the catalogue has.
    """
    found = TopK(
        np.full((len(users), k), NOTHING, dtype=np.int64), np.full((len(users), k), HIDDEN, dtype=np.float32)
    )
    depth = min(k, scorer.sizes.items if candidates is None else len(candidates))
    codes = None if candidates is None else torch.from_numpy(candidates)
    for rows, scores in score_blocks(scorer, users, histories, hide=hide, candidates=candidates):
        if rest is not None:
            scores = rest(scores, users[rows], None if candidates is None else candidates[None])
        values, items = top_k(scores, depth)
        items = items if codes is None else codes.to(items.device)[items]
        found.items[rows, :depth] = items.where(values > HIDDEN, NOTHING).cpu().numpy()
        found.scores[rows, :depth] = values.cpu().numpy()
    return found


def best_of_block(scores: Tensor, block: Block, k: int) -> NDArray[np.int64]:
    """The codes of the k best candidates of each user of a scored block, NOTHING for hidden ones: (b, k)."""
    values, columns = top_k(scores, k)
    items = block.items.to(scores.device).expand(len(scores), -1).gather(1, columns)
    return items.where(values > HIDDEN, NOTHING).cpu().numpy()
