"""Compiled loops on several threads, with the same floats whatever their number.

A loop takes which part of how many it is to do, and its parts write to different places, so that nothing
depends on who comes first. Threads are Python's: the loops run without its lock. Unlike numba's own threads
these may be asked from several threads at once and after a fork, and they sleep while there is nothing to do.

Torch shares out single operations. A step of training has hundreds, and to wake a thread for each costs more
than it brings (benchmarks/threads.py), so steps are taken within `coarse`.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import torch

# Multiplications for which it is worth waking another thread: some half a millisecond of them.
_WORTH_A_THREAD = 4_000_000
# Destinations go to so many slots in turn, and each part owns a run of slots: an even share, whichever
# destinations are popular.
SLOTS = 64

_T = TypeVar("_T")
_coarse: ContextVar[int | None] = ContextVar("coarse", default=None)


@contextmanager
def coarse() -> Iterator[None]:
    """A block in which torch computes on one thread, and others are left to `run` and `each`."""
    before = torch.get_num_threads()
    token = _coarse.set(_coarse.get() or before)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _coarse.reset(token)


def at_once() -> int:
    """How many calls `each` should get: one outside of `coarse`, where torch has the threads."""
    return _coarse.get() or 1


def each(calls: Sequence[Callable[[], _T]]) -> list[_T]:
    """What the calls give, in their order: each on a thread of its own, and torch on one thread in each."""
    if len(calls) == 1:
        return [calls[0]()]
    pool = _pool_for_torch(os.getpid(), len(calls) - 1)
    others = [pool.submit(call) for call in calls[1:]]
    return [calls[0](), *(other.result() for other in others)]


def run(loop: Callable[..., None], steps: int, *arguments: Any) -> None:
    """Do all parts of loop(part, parts, *arguments), on as many threads as may be used; it has `steps`."""
    threads = _coarse.get() or torch.get_num_threads()
    parts = max(1, min(threads, SLOTS, steps // _WORTH_A_THREAD))
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


@cache
def _pool_for_torch(process: int, threads: int) -> ThreadPoolExecutor:
    """The same for calls that use torch, which is to have no threads of its own within these."""
    return ThreadPoolExecutor(threads, "towpath-torch", initializer=torch.set_num_threads, initargs=(1,))
