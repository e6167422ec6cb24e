"""Where a recommender stands between going its own way and repeating what was shown before."""

from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from numpy.typing import NDArray

from towpath.baselines.imitation import imitation_risk
from towpath.data.interactions import Interactions
from towpath.data.negatives import PairSet
from towpath.data.split import Split
from towpath.models.factorization import Factorization, FactorizationSettings
from towpath.models.registry import parse_settings
from towpath.models.scorer import Context, Scorer, sizes_of
from towpath.ranking.blocks import NOTHING
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng
from towpath.training.impressions import ImpressionBatches
from towpath.training.optimiser import Optimiser

# Lists of more users, and a critic that has learned for longer, say the same.
_MOST_USERS, _STEPS = 2_000, 600
_DIM, _RATE, _L2, _NEGATIVES = 8, 0.01, 0.02, 3


@dataclass(frozen=True)
class Dial:
    """How near to the log the recommended pairs are."""

    shown_share: float  # share of the recommended pairs that the log has shown already
    likeness: float  # 0: like pairs of the catalogue at random; 1: like those that were shown


def dial_of(scorer: Scorer, split: Split, k: int = 10) -> Dial | None:
    """Where the lists of this scorer stand; None where the log does not say what was shown.

        likeness = (mean e(recommended) - mean e(random)) / (mean e(shown) - mean e(random))

    e is the score of a critic, a small factorisation that tells shown pairs from the rest of the catalogue.
    """
    log = split.train.impressions
    if log is None or not split.train.knows_unclicked:
        return None
    draw, train = Rng(0).numpy("dial"), split.train
    known = np.flatnonzero(train.histories.lengths)
    users = np.sort(draw.choice(known, min(_MOST_USERS, len(known)), replace=False))
    lists = top_k_lists(scorer, users, train.histories, min(k, train.n_items)).items
    listed = lists != NOTHING
    mine, items = np.broadcast_to(users[:, None], lists.shape)[listed], lists[listed]
    critic = _critic(train)
    rows = draw.integers(len(log), size=len(mine))
    near = _mean(critic, log.users[rows], log.items[rows])
    far = _mean(critic, draw.permutation(mine), draw.integers(train.n_items, size=len(mine)))
    return Dial(
        float(PairSet(log).contains(mine, items).mean()),
        (_mean(critic, mine, items) - far) / (near - far),
    )


def _critic(train: Interactions) -> Factorization:
    rng = Rng(0).child("dial")
    critic = Factorization(parse_settings(FactorizationSettings, {"embedding_dim": _DIM}), sizes_of(train))
    critic.initialise(train, rng)
    batches, optimiser, left = ImpressionBatches(train, _NEGATIVES), Optimiser([critic], _RATE), _STEPS
    for epoch in count(1):
        for batch in batches.epoch(epoch, rng):
            risk, norm = imitation_risk(critic, batch)
            optimiser.step(risk + _L2 * norm)
            left -= 1
            if not left:
                return critic
    raise AssertionError("an epoch has batches")


def _mean(critic: Factorization, users: NDArray[np.integer], items: NDArray[np.integer]) -> float:
    codes, places = torch.from_numpy(users.astype(np.int64)), torch.from_numpy(items.astype(np.int64))
    with torch.no_grad():
        scores = critic.score(Context(codes, torch.empty(len(codes), 0, dtype=torch.long)), places[:, None])
    return float(scores.mean())
