"""One recipe fitted with one seed and evaluated: the specification, the result, and how it is stored."""

import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from towpath.data.split import Part
from towpath.evaluation.protocols import EvalProtocol
from towpath.evaluation.result import Evaluation
from towpath.experiments.result_store import Entry, ResultKey, ResultStore
from towpath.methods.recipe import Recipe
from towpath.training.fit import EpochMetrics, Fit

# What figures of training time need of an epoch.
_EPOCH_COLUMNS = ("epoch", "seconds", "validation_seconds", "validation_hit", "validation_ndcg")

_USERS = "user"
_LISTS = "list"


@dataclass(frozen=True)
class EvaluationConfig:
    """How every fit is evaluated."""

    protocols: Sequence[EvalProtocol] = ("full",)
    on: Part = "test"
    k: int = 10
    truth: Path | None = None  # folder of the world that the protocol `truth` evaluates by

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The same as plain values."""
        # The truth belongs to the data, wherever it lies.
        return {"protocols": list(self.protocols), "on": self.on, "k": self.k}


@dataclass(frozen=True)
class RunSpec:
    """A fit that is wanted: what it is called in a table, and the recipe with its seed."""

    label: str
    recipe: Recipe

    def key(self, store: ResultStore, data: str, evaluation: EvaluationConfig) -> ResultKey:
        """The key of its result; the label is not part of it."""
        return store.key(data=data, recipe=self.recipe, evaluation=evaluation.to_json())


@dataclass(frozen=True)
class RunResult:
    """One recipe fitted with one seed and evaluated."""

    kind: ClassVar[str] = "run"

    label: str
    seed: int
    epochs: int
    seconds: float  # spent in training epochs, validation not counted
    evaluations: tuple[Evaluation, ...]
    history: tuple[EpochMetrics, ...] = ()  # one row an epoch
    processor_seconds: float | None = None  # of the fit and its evaluation, where it was measured
    lists: NDArray[np.int64] | None = None  # (users, k) what it would show, where that is looked at

    def to_entry(self) -> Entry:
        """Users, then one column for each protocol and metric; everything else as notes.

        A protocol that evaluates other users than the first one has a column of its own for them. Columns
        are padded to one length, and the notes have the true ones.
        """
        found = dict(self._columns())
        longest = max(map(len, found.values()))
        columns = {name: _padded(values, longest) for name, values in found.items()}
        names = ("protocol", "on", "k", "overall", "users_left_out")
        heads = [
            {name: getattr(e, name) for name in names} | {"rows": len(e.users)} for e in self.evaluations
        ]
        own = ("label", "seed", "epochs", "seconds", "processor_seconds")
        notes = {name: getattr(self, name) for name in own}
        if self.lists is not None:
            notes["listed_users"] = len(self.lists)
        return Entry(columns, {**notes, "history": list(self.history), "evaluations": heads})

    def _columns(self) -> Iterator[tuple[str, NDArray[Any]]]:
        first = self.evaluations[0].users
        yield _USERS, first
        for n, e in enumerate(self.evaluations):
            if not np.array_equal(e.users, first):
                yield f"{n}/{_USERS}", e.users
            yield from ((f"{n}/{metric}", values) for metric, values in e.per_user.items())
        if self.lists is not None:
            yield from ((f"{_LISTS}/{place}", column) for place, column in enumerate(self.lists.T))

    @classmethod
    def from_entry(cls, entry: Entry) -> "RunResult":
        """The stored result, under the label that it was stored with."""
        notes = dict(entry.notes)
        heads = enumerate(notes.pop("evaluations"))
        evaluations = tuple(_evaluation(n, dict(head), entry.columns) for n, head in heads)
        listed = [
            v[: notes.get("listed_users")] for name, v in entry.columns.items() if name.startswith(_LISTS)
        ]
        lists = np.stack(listed, axis=1).astype(np.int64) if listed else None
        notes.pop("listed_users", None)
        return cls(evaluations=evaluations, history=tuple(notes.pop("history")), lists=lists, **notes)


def _evaluation(number: int, head: dict[str, Any], columns: Mapping[str, NDArray[Any]]) -> Evaluation:
    rows, prefix = head.pop("rows"), f"{number}/"
    own = {name.removeprefix(prefix): v[:rows] for name, v in columns.items() if name.startswith(prefix)}
    users = own.pop(_USERS, columns[_USERS][:rows]).astype(np.int64, copy=False)
    return Evaluation(users=users, per_user=own, **head)


def _padded(values: NDArray[Any], length: int) -> NDArray[Any]:
    return np.concatenate([values, np.zeros(length - len(values), dtype=values.dtype)])


def result_of(
    spec: RunSpec, fitted: Fit, evaluations: tuple[Evaluation, ...], processor_seconds: float
) -> RunResult:
    """The result of a fit and its evaluations."""
    seconds = sum(row["seconds"] for row in fitted.history)
    history = tuple({n: row[n] for n in _EPOCH_COLUMNS if n in row} for row in fitted.history)
    return RunResult(
        spec.label,
        spec.recipe.seed,
        len(fitted.history),
        seconds,
        evaluations,
        history,
        processor_seconds,
    )


def processor_seconds() -> float:
    """Processor time that this process has used so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
