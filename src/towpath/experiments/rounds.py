"""One round of the closed loop: its metrics, and how they are stored with the rows that it logged."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import COLUMNS, Interactions
from towpath.data.split import split_leave_last_two
from towpath.experiments.result_store import Entry
from towpath.worlds.world import World


@dataclass(frozen=True)
class Round:
    """One round of one arm: what the log promised, what happened, and what the lists were like."""

    arm: str
    number: int  # from 1
    click_through: float  # share of what was shown that was clicked
    relevance: float  # Rel@K: true relevance summed over a list, the clicks to expect on it
    best: float  # Rel@K of the best list that could have been shown
    coverage: float  # share of the catalogue in anyone's list
    popularity: float  # mean over all slots of (clicks of the item in the first log / users)
    concentration: float  # Gini of how often each item was shown
    promised_hit: float  # Hit@K on the hidden clicks of the arm's own log, before it was deployed
    true_hit: float  # Hit@K if the next click came by relevance alone, whatever the log had shown


@dataclass(frozen=True)
class RoundRecord:
    """A round with the columns of the rows that it added to the log."""

    kind: ClassVar[str] = "round"

    round: Round
    columns: Mapping[str, NDArray[Any]]

    def to_entry(self) -> Entry:
        """The rows as columns, the numbers as notes."""
        return Entry(self.columns, asdict(self.round))

    @classmethod
    def from_entry(cls, entry: Entry) -> "RoundRecord":
        """The stored round."""
        return cls(Round(**entry.notes), entry.columns)

    def rows(self, log: Interactions) -> Interactions:
        """The rows, with the users and items of this log."""
        columns: dict[str, Any] = dict(self.columns)
        return Interactions(user_ids=log.user_ids, item_ids=log.item_ids, **columns)


def record_of(result: Round, rows: Interactions) -> RoundRecord:
    """The round and its rows as they are stored."""
    return RoundRecord(result, _columns(rows))


def world_fingerprint(world: World) -> str:
    """A digest of the first log, of all that was shown, and of the true relevance."""
    digest = hashlib.sha256(split_leave_last_two(world.log).fingerprint.encode())
    for values in (*_columns(world.exposures).values(), world.relevance):
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _columns(rows: Interactions) -> dict[str, NDArray[Any]]:
    columns = {name: getattr(rows, name) for name in COLUMNS}
    return {name: values for name, values in columns.items() if values is not None}
