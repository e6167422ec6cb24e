"""The state of a run whose tables are spread over several processes, each writing its own rows.

By torch.distributed.checkpoint, as safetensors: nothing that is read back can be a program. It can be read by
another number of processes, each of which gets the rows that are then its own.
"""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from pydantic import BaseModel
from torch import Tensor

from towpath.boundary import stored
from towpath.files import Form, check_listed, new_folder, read_manifest, unfinished, write_manifest
from towpath.training.checkpoint import Progress
from towpath.training.distributed import leads
from towpath.training.fit import parse_history
from towpath.training.learner import Learner


class _Notes(BaseModel):
    """What the manifest must say."""

    history: str
    best_epoch: int
    best_score: str


STORED_AS = Form("sharded checkpoint", 1, contents=_Notes)


def save_shards(folder: Path, progress: Progress, learner: Learner) -> None:
    """Write next to the old folder, then replace it; all processes at the same time."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    state = _state(learner, learner.live_state(), progress.best, progress.auxiliary_state)
    with new_folder(folder) if leads() else nullcontext(unfinished(folder)) as partial:
        dist.barrier()  # the folder is there
        save(state, storage_writer=HuggingFaceStorageWriter(str(partial), save_distributed=True))
        if leads():
            notes = {
                "history": json.dumps(progress.history),
                "best_epoch": progress.best_epoch,
                "best_score": repr(progress.best_score),
            }
            write_manifest(partial, STORED_AS, notes, sorted(path.name for path in partial.iterdir()))
    dist.barrier()  # it has its name


def load_shards(folder: Path, learner: Learner) -> Progress:
    """What `save_shards` wrote, once every byte has been checked; the learner is back in its state."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    check_listed(folder)
    manifest = read_manifest(folder, STORED_AS)
    live = learner.live_state()
    best = {key: torch.empty_like(tensor) for key, tensor in learner.scorer.state_dict().items()}
    auxiliary = learner.auxiliary_state()
    with stored(folder):
        # Tensors are filled where they are.
        load(_state(learner, live, best, auxiliary), storage_reader=HuggingFaceStorageReader(str(folder)))
        learner.load_state(live)
        history = tuple(parse_history(manifest["history"].encode()))
        return Progress(history, manifest["best_epoch"], float(manifest["best_score"]), best, auxiliary)


def _state(
    learner: Learner, live: Mapping[str, Tensor], best: Mapping[str, Tensor], auxiliary: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """All tensors under names of their own; of a sharded table, its rows as a part of the whole."""
    rows = learner.sharded_rows()
    of_scorer = "module.scorer."
    parts = {
        "learner": (live, rows),
        "best": (best, {k.removeprefix(of_scorer): n for k, n in rows.items() if k.startswith(of_scorer)}),
        "auxiliary_state": (auxiliary, {}),
    }
    return {
        f"{part}/{key}": _as_part(tensor, sharded[key]) if key in sharded else tensor
        for part, (tensors, sharded) in parts.items()
        for key, tensor in tensors.items()
    }


def _as_part(own: Tensor, rows: int) -> Tensor:
    """The rows that this process has, as torch knows a tensor that is sharded by rows; not copied."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    whole = torch.Size((rows, *own.shape[1:]))
    return DTensor.from_local(
        own.detach(), mesh, [Shard(0)], run_check=False, shape=whole, stride=own.stride()
    )
