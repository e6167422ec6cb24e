"""What the fits of a comparison gave, kept in a folder so that none has to be made twice.

A file is named after all that its numbers depend on: data, split, recipe, seed and how it was judged. What is
asked for again is found, and what is asked for otherwise is another file; nothing can be mixed up.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from towpath.data.parquet import read_table, write_table
from towpath.data.split import Part
from towpath.evaluation.protocols import Protocol
from towpath.evaluation.result import Evaluation
from towpath.files import new_file
from towpath.methods.recipe import Recipe
from towpath.training.fit import Row

# Grows when the form of the files, or what goes into their numbers, changes.
_FORMAT = 1
_ABOUT = b"towpath"


@dataclass(frozen=True)
class Judging:
    """How every fit is judged."""

    protocols: Sequence[Protocol] = ("full",)
    on: Part = "test"
    k: int = 10
    truth: Path | None = None  # folder of the world whose truth the protocol `truth` judges by


@dataclass(frozen=True)
class Done:
    """One recipe fitted with one seed and judged."""

    label: str
    seed: int
    epochs: int
    seconds: float  # spent in training epochs, validation not counted
    evaluations: tuple[Evaluation, ...]
    history: tuple[Row, ...] = ()  # one row an epoch, where it was asked for
    processor_seconds: float | None = None  # of all that was done for it, where it was measured


Cell = tuple[str, Recipe]  # what a recipe is called, and the recipe with its seed


@dataclass(frozen=True)
class KeptCells:
    """The folder of what came of fits on one split, all judged in one way.

    `code` says which code made the numbers; two versions of it do not share files.
    """

    folder: Path
    fingerprint: str  # of the split
    judging: Judging
    code: str = ""

    def find(self, cell: Cell) -> Done | None:
        """What came of this cell, if it was kept; the label is the cell's own."""
        path = self.path(cell)
        return read_cell(path, cell[0]) if path.is_file() else None

    def keep(self, cell: Cell, done: Done) -> None:
        """Write what came of this cell."""
        with new_file(self.path(cell)) as partial:
            write_table(_table(self._about(cell), done), partial)

    def _about(self, cell: Cell) -> dict[str, Any]:  # a JSON object
        """All that the numbers depend on."""
        judged = asdict(self.judging) | {"protocols": list(self.judging.protocols)}
        del judged["truth"]  # wherever it lies, it belongs to the data
        about = {"format": _FORMAT, "data": self.fingerprint, "recipe": cell[1].resolved(), "judging": judged}
        return {**about, "code": self.code} if self.code else about

    def path(self, cell: Cell) -> Path:
        """Where what came of this cell is, or would be."""
        text = json.dumps(self._about(cell), sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.parquet"


def _table(about: dict[str, Any], done: Done) -> pa.Table:  # any JSON
    """Users, then one column for each protocol and metric; everything else in the notes of the table."""
    first = done.evaluations[0]
    columns = {"user": first.users} | {
        f"{n}/{metric}": values
        for n, e in enumerate(done.evaluations)
        for metric, values in e.per_user.items()
    }
    heads = [
        {
            "protocol": e.protocol,
            "on": e.on,
            "k": e.k,
            "overall": e.overall,
            "users_left_out": e.users_left_out,
        }
        for e in done.evaluations
    ]
    notes = {**about, "epochs": done.epochs, "seconds": done.seconds, "evaluations": heads}
    notes |= {"history": done.history, "processor_seconds": done.processor_seconds}
    return pa.table(columns).replace_schema_metadata({_ABOUT: json.dumps(notes)})


def read_cell(path: Path, label: str) -> Done:
    """What the file of a cell holds, under this label."""
    table = read_table(path)
    notes = json.loads(table.schema.metadata[_ABOUT])
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    users = columns.pop("user").astype(np.int64, copy=False)
    evaluations = tuple(
        Evaluation(
            users=users,
            per_user={k.partition("/")[2]: v for k, v in columns.items() if k.partition("/")[0] == str(n)},
            **head,
        )
        for n, head in enumerate(notes["evaluations"])
    )
    return Done(
        label,
        notes["recipe"]["seed"],
        notes["epochs"],
        notes["seconds"],
        evaluations,
        tuple(notes.get("history", ())),
        notes.get("processor_seconds"),
    )
