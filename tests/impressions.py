"""Small logs of impressions with propensities, whose click chances are known."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.data.split import Split, split_at_random
from towpath.data.vocabulary import Vocabulary
from towpath.rng import Rng


def impressions_log(users: int = 120, items: int = 30, rows: int = 6000, seed: int = 0) -> Interactions:
    """Positives with the log behind them; users of two kinds, popular items shown more."""
    rng = Rng(seed).numpy("impressions")
    chances = click_chances(users, items)
    shown = np.linspace(2, 0.2, items) / np.linspace(2, 0.2, items).sum()
    who = np.sort(rng.integers(users, size=rows)).astype(np.int32)
    what = rng.choice(items, size=rows, p=shown).astype(np.int32)
    log = Interactions(
        users=who,
        items=what,
        user_ids=Vocabulary(pa.array([f"u{n}" for n in range(users)])),
        item_ids=Vocabulary(pa.array([f"i{n}" for n in range(items)])),
        times=np.arange(rows, dtype=np.int64),
        labels=rng.random(rows) < chances[who, what],
        propensities=shown[what].astype(np.float32),
    )
    return log.positives


def click_chances(users: int, items: int) -> NDArray[np.float64]:
    """(users, items): even users click even items, odd users odd ones."""
    return np.where(np.arange(users)[:, None] % 2 == np.arange(items)[None, :] % 2, 0.6, 0.1)


def impressions_split(**sizes: int) -> Split:
    return split_at_random(impressions_log(**sizes), validation_share=0.25, test_share=0.25, rng=Rng(0))
