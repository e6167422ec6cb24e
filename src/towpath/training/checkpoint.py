"""The state of a run after an epoch, in one file that is either whole or not there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from towpath.boundary import loading, stored
from towpath.errors import ArtifactError
from towpath.files import check_listed, new_file
from towpath.models.tensors import write_tensors
from towpath.training.fit import EpochMetrics, parse_history

_FORMAT = "4"


@dataclass(frozen=True)
class Progress:
    """How far a run has come: everything that the epochs to come depend on.

    `best` and `auxiliary_state` are the scorer and the other players of the best epoch. Generators are
    derived from the epoch number (rng.py), so none of their state needs keeping. What the learner is now it
    holds itself; a second copy of all tables and their moments would double the memory of a fit.
    """

    history: tuple[EpochMetrics, ...]
    best_epoch: int  # 0: the start, before any training
    best_score: float  # validation Hit@10 of the best epoch
    best: dict[str, Tensor]
    auxiliary_state: dict[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds: how far the run has come, and the state of its learner."""

    progress: Progress
    learner: dict[str, Tensor]


def save_checkpoint(path: Path, progress: Progress, learner: Mapping[str, Tensor]) -> None:
    """Write next to the old checkpoint, then replace it in one move; `learner` is the learner's state."""
    parts = {"learner": learner, "best": progress.best, "auxiliary_state": progress.auxiliary_state}
    tensors = {f"{part}/{k}": v for part, state in parts.items() for k, v in state.items()}
    notes = {
        "format": _FORMAT,
        "history": json.dumps(progress.history),
        "best_epoch": str(progress.best_epoch),
        "best_score": repr(progress.best_score),
    }
    with new_file(path, advice="free some space, then go on with --resume") as partial:
        write_tensors(tensors, partial, notes)


def load_checkpoint(path: Path) -> Checkpoint:
    """What `save_checkpoint` wrote, once every byte has been checked where the run lists its checksum."""
    check_listed(path)
    again = "delete it to start over"
    with loading(f"The checkpoint {path}", again), safe_open(path, framework="pt") as file:
        notes = file.metadata() or {}
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  # not a dict
    if notes.get("format") != _FORMAT:
        raise ArtifactError(
            f"The checkpoint {path} has format {notes.get('format')!r}, this version reads {_FORMAT!r}; "
            "delete it to start over."
        )
    parts: dict[str, dict[str, Tensor]] = {"learner": {}, "best": {}, "auxiliary_state": {}}
    with stored(f"The checkpoint {path}", again):
        for key, tensor in tensors.items():
            part, name = key.split("/", 1)
            parts[part][name] = tensor
        history = tuple(parse_history(notes["history"].encode()))
        learner = parts.pop("learner")
        return Checkpoint(
            Progress(history, int(notes["best_epoch"]), float(notes["best_score"]), **parts), learner
        )


def add_prefix(name: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A part's state, each key under the part's name; the tensors are not copied."""
    return {f"{name}.{key}": tensor.detach() for key, tensor in state.items()}


def strip_prefix(name: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The part of a state that `add_prefix` put under this name."""
    return {k.removeprefix(f"{name}."): v for k, v in state.items() if k.startswith(f"{name}.")}
