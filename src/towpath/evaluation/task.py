"""Who is evaluated, on which targets, and what was known before."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Histories
from towpath.data.split import Part, Split
from towpath.errors import DataError
from towpath.mapped import chunks


@dataclass(frozen=True)
class RankingTask:
    """The users of one part of a split, their targets and what they had seen by then.

    Evaluated are users with training events and at least one target. A target counts once however often it
    occurs, and not at all if the user had seen it before, since lists do not show seen items.
    """

    split: Split
    seen: Histories  # by user code: training, and for test validation too
    hidden: Histories  # by user code: what may not be listed, which is what was seen but for the targets
    users: NDArray[np.int64]  # (n,) codes, ascending
    rows: NDArray[np.int64]  # (m,) places in `users`, ascending
    targets: NDArray[np.int64]  # (m,) item codes
    users_left_out: int  # have events in this part but are not evaluated

    @property
    def n_items(self) -> int:
        """Size of the catalogue."""
        return self.split.train.n_items

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each evaluated user's targets begin in `rows` and `targets`: (n + 1,)."""
        return np.searchsorted(self.rows, np.arange(len(self.users) + 1))


def task_of(split: Split, on: Part) -> RankingTask:
    """What is to be evaluated on this part of the split.

    A target that the user had seen before is left out, unless the part comes from a file of its own.
    """
    part = split.part(on)
    if not len(part):
        raise DataError(
            f"The {on} part of the split has no events to evaluate on; split so that it has some."
        )
    seen = split.train if on == "validation" else split.before_test
    wanted = np.unique(part.pair_keys())
    hidden = seen.histories
    if on in split.outside:
        hidden = seen.where(~np.isin(seen.pair_keys(), wanted)).histories
    else:
        wanted = wanted[~_among(wanted, seen.pair_keys())]
    wanted = wanted[split.train.histories.lengths[wanted // part.n_items] > 0]
    if not len(wanted):
        raise DataError(
            f"None of the {len(np.unique(part.users)):,} users of the {on} part has both training events and "
            "a target not seen before; use a split that leaves each user some training events."
        )
    users, rows = np.unique(wanted // part.n_items, return_inverse=True)
    left_out = len(np.unique(part.users)) - len(users)
    return RankingTask(split, seen.histories, hidden, users, rows, wanted % part.n_items, left_out)


def _among(keys: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the sorted, distinct `keys` occur in `others` (any order): (len(keys),)."""
    # Looks the many up in the few: no sort of all events.
    found = np.zeros(len(keys), dtype=np.bool_)
    for some in chunks(len(others)):
        places = np.minimum(np.searchsorted(keys, others[some]), len(keys) - 1)
        found[places[keys[places] == others[some]]] = True
    return found
