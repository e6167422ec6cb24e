"""Compiled loops on several threads, with the same floats whatever their number.

A loop takes which part of how many it is to do, and its parts write to different places, so that nothing
depends on who comes first. Threads are Python's: the loops run without its lock. Unlike numba's own threads
these may be asked from several threads at once and after a fork, and they sleep while there is nothing to do.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch

# Multiplications for which it is worth waking another thread: some half a millisecond of them.
_WORTH_A_THREAD = 4_000_000
# Destinations go to so many slots in turn, and each part owns a run of slots: an even share, whichever
# destinations are popular.
SLOTS = 64


def run(loop: Callable[..., None], steps: int, *arguments: Any) -> None:
    """Do all parts of loop(part, parts, *arguments), on as many threads as torch may use; it has `steps`."""
    parts = max(1, min(torch.get_num_threads(), SLOTS, steps // _WORTH_A_THREAD))
    if parts == 1:
        loop(0, 1, *arguments)
        return
    pool = _pool(os.getpid(), parts - 1)
    others = [pool.submit(loop, part, parts, *arguments) for part in range(1, parts)]
    loop(0, parts, *arguments)
    for other in others:
        other.result()


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """The threads of this process, which are started when first needed; those of a parent do not survive."""
    return ThreadPoolExecutor(threads, thread_name_prefix="towpath-kernels")
