"""Small interactions for tests, made on the spot."""

import numpy as np
import pyarrow as pa

from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.vocabulary import Vocabulary


def small_interactions(users: int = 60, items: int = 40, per_user: int = 12, seed: int = 0) -> Interactions:
    """Users with tastes: each takes `per_user` items, mostly from their own half of the catalogue."""
    rng = np.random.default_rng(seed)
    taste = np.where(np.arange(users)[:, None] % 2 == np.arange(items)[None, :] % 2, 2.0, 0.0)
    noise = rng.gumbel(size=(users, items)) + np.linspace(1, 0, items)[None, :]
    taken = np.argsort(-(taste + noise), axis=1)[:, :per_user]
    return Interactions(
        users=np.repeat(np.arange(users), per_user).astype(np.int32),
        items=taken.reshape(-1).astype(np.int32),
        user_ids=Vocabulary(pa.array([f"u{n}" for n in range(users)])),
        item_ids=Vocabulary(pa.array([f"i{n}" for n in range(items)])),
        times=np.tile(np.arange(per_user), users).astype(np.int64),
    )


def small_split(**sizes: int) -> Split:
    """The last event of each user tests, the one before validates."""
    whole = small_interactions(**sizes)
    back = whole.histories.starts[whole.users + 1] - 1 - np.arange(len(whole))
    return Split(whole.where(back > 1), whole.where(back == 1), whole.where(back == 0), "by hand")
