"""The rounds of a closed loop, kept in a folder so that none has to be played twice."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from towpath.data.interactions import COLUMNS, Interactions
from towpath.data.parquet import read_table, write_table
from towpath.data.split import split_leave_last_two
from towpath.files import new_file
from towpath.worlds.world import World

# Grows when the form of the files, or what goes into their numbers, changes.
_FORMAT = 1
_ABOUT = b"towpath"


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
class RoundStore:
    """The folder of rounds played in one world with one seed.

    A file is named after all that its numbers depend on, so nothing can be mixed up.
    """

    folder: Path
    world: World = field(repr=False)
    seed: int

    def find(self, arm: str, about: Mapping[str, object], number: int) -> tuple[Round, Interactions] | None:
        """The round and what it logged, if it was kept."""
        path = self._path(about, number)
        if not path.is_file():
            return None
        table = read_table(path)
        columns = {name: table.column(name).to_numpy().copy() for name in table.column_names}
        ids = self.world.exposures
        notes = json.loads(table.schema.metadata[_ABOUT])
        rows = Interactions(user_ids=ids.user_ids, item_ids=ids.item_ids, **columns)
        return Round(**notes | {"arm": arm}), rows

    def keep(self, about: Mapping[str, object], done: Round, rows: Interactions) -> None:
        """Write a round and what it logged."""
        columns = {name: getattr(rows, name) for name in COLUMNS}
        table = pa.table({name: column for name, column in columns.items() if column is not None})
        with new_file(self._path(about, done.number)) as partial:
            write_table(table.replace_schema_metadata({_ABOUT: json.dumps(asdict(done))}), partial)

    def _path(self, about: Mapping[str, object], number: int) -> Path:
        text = json.dumps({"format": _FORMAT, "world": self._fingerprint, "seed": self.seed, **about})
        return self.folder / hashlib.sha256(text.encode()).hexdigest()[:24] / f"round-{number:03d}.parquet"

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256(split_leave_last_two(self.world.log).fingerprint.encode())
        digest.update(np.ascontiguousarray(self.world.relevance).data)
        return digest.hexdigest()
