"""Processes that train together, started by a test without torchrun."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist

_WORK = """
import sys, warnings
from importlib import import_module
from pathlib import Path
from processes import group
module, function, rank, size, folder = sys.argv[1:]
with group(Path(folder) / f"store-{size}", int(rank), int(size)):
    getattr(import_module(module), function)(Path(folder))
"""


@contextmanager
def group(store: Path, rank: int = 0, size: int = 1) -> Iterator[None]:
    """A block in which this process is one of so many that find each other by a file."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    try:
        yield
        dist.barrier()
    finally:
        dist.destroy_process_group()


def run_together(module: str, function: str, size: int, folder: Path) -> None:
    """Call a function of a test module, with this folder, in so many processes that are one group."""
    paths = os.pathsep.join(filter(None, sys.path))
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _WORK, module, function, str(rank), str(size), str(folder)],
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    said = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0] * size, "\n".join(said)
