"""Scores of users, block by block, with the candidates that are out of the running hidden."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Histories
from towpath.models.scorer import Scorer, context_of
from towpath.ranking.blocks import Block, Hide, catalogue_blocks, shared_candidate_blocks
from towpath.ranking.top_k import HIDDEN


@contextmanager
def inference_mode(scorer: Scorer) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards the scorer is in the mode it was in."""
    was_training = scorer.training
    scorer.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        scorer.train(was_training)


def score_block(scorer: Scorer, block: Block, histories: Histories) -> Tensor:
    """Scores (b, c) of each user's candidates after these histories, HIDDEN where the block says so.

    They are on the scorer's device and a copy of their own.
    """
    with inference_mode(scorer):
        context = context_of(scorer, block.users, histories)
        scores = scorer.score(context, block.items.to(context.users.device))
        # A copy: what a scorer returns may be a view of its own tables, which hiding must not write to.
        scores = scores.expand(len(block.users), -1).clone(memory_format=torch.contiguous_format)
        scores.view(-1).index_fill_(0, block.hidden.to(scores.device), HIDDEN)
    return scores


def score_blocks(
    scorer: Scorer,
    users: NDArray[np.int64],
    histories: Histories,
    *,
    hide: Hide = "interacted",
    candidates: NDArray[np.int64] | None = None,
) -> Iterator[tuple[slice, Tensor]]:
    """Every user's scores of the whole catalogue: runs of `users` (n,), in order, with scores (b, items).

    With `candidates` (c,), distinct codes, of those alone: (b, c). What users have interacted with, that
    is, what is in `histories`, is HIDDEN unless `hide` says otherwise. Copy what you keep of a block into
    place: a small tensor that is kept as it is lies between the large ones that are freed and hinders
    their reuse, and a view pins its whole block.
    """
    hidden = histories if hide == "interacted" else None if hide == "nothing" else hide
    n_items, start = scorer.sizes.items, 0
    blocks = (
        catalogue_blocks(users, n_items, hidden)
        if candidates is None
        else shared_candidate_blocks(users, candidates, n_items, hidden)
    )
    for block in blocks:
        yield slice(start, start + len(block.users)), score_block(scorer, block, histories)
        start += len(block.users)
