"""Scores of a block of users, with the candidates that are out of the running hidden."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from towpath.data.interactions import Histories
from towpath.data.vocabulary import UNKNOWN
from towpath.evaluation.ranking import HIDDEN
from towpath.models.scorer import Scorer, context_of


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


def score_candidates(
    scorer: Scorer, users: NDArray[np.int64], histories: Histories, items: Tensor, hidden: Tensor
) -> Tensor:
    """Scores (b, c) of each user's candidates, HIDDEN at the places (h,) of `hidden`: row * c + column.

    items: (b, c), or (1, c) for the same candidates for everyone. The memory is the caller's: take as many
    users at once as `rows_per_block` allows.
    """
    context = context_of(scorer, users, histories)
    scores = scorer.score(context, items.to(context.users.device))
    # A copy: what a scorer returns may be a view of its own tables, which hiding must not write to.
    return hide(scores.expand(len(users), -1).clone(memory_format=torch.contiguous_format), hidden)


def score_catalogue(scorer: Scorer, users: NDArray[np.int64], histories: Histories) -> Tensor:
    """Scores (b, items) of the whole catalogue for each user, HIDDEN where the item is in their history."""
    items = torch.arange(scorer.sizes.items)[None, :]
    return score_candidates(scorer, users, histories, items, seen_indices(histories, users, items.shape[1]))


def seen_indices(histories: Histories, users: NDArray[np.int64], n_items: int) -> Tensor:
    """Where each user's own items lie in a block of scores (b, n_items), as row * n_items + item: (m,).

    A user who is UNKNOWN has interacted with nothing.
    """
    known = np.flatnonzero(users != UNKNOWN)
    rows, items = histories.pairs_of(users[known])
    return torch.from_numpy(known[rows] * n_items + items)


def hide(scores: Tensor, places: Tensor) -> Tensor:
    """The same contiguous scores (b, c), now HIDDEN at these places: row * c + column."""
    scores.view(-1).index_fill_(0, places.to(scores.device), HIDDEN)
    return scores
