"""Several recipes fitted with the same seeds on the same split, judged alike and compared in pairs."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context, parent_process
from threading import Thread

import torch

from towpath.data.split import Part, Split
from towpath.errors import ConfigError, TrainingError
from towpath.evaluation.comparison import Comparison, compare
from towpath.evaluation.evaluate import evaluate, refuse_impossible
from towpath.evaluation.protocols import Protocol
from towpath.evaluation.result import Evaluation
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import is_trainable
from towpath.rng import Rng


@dataclass(frozen=True)
class Judging:
    """How every fit is judged."""

    protocols: Sequence[Protocol] = ("full",)
    on: Part = "test"
    k: int = 10


@dataclass(frozen=True)
class Done:
    """One recipe fitted with one seed and judged."""

    label: str
    seed: int
    epochs: int
    seconds: float  # spent in training epochs, validation not counted
    evaluations: tuple[Evaluation, ...]


def compare_fits(
    split: Split,
    recipes: Mapping[str, Recipe],
    *,
    seeds: Sequence[int],
    judging: Judging | None = None,
    watch: Callable[[Done], None] | None = None,
    jobs: int = 1,
) -> Comparison:
    """Means over seeds of each recipe, and its paired differences to the first one.

    The split and the evaluation's negatives are the same for all; a seed changes initial values and sampling.
    A model in closed form is fitted once, whatever the seeds.
    `jobs` processes share the work, each on one thread; the numbers do not depend on how many.
    """
    judging = judging or Judging()
    if not recipes or not seeds:
        raise ConfigError("A comparison needs at least one model and one seed.")
    for recipe in recipes.values():  # whatever cannot be is said before the first fit, not after it
        recipe.resolve()
    for protocol in judging.protocols:
        refuse_impossible(split, protocol, judging.on, judging.k)
    cells = cells_of(recipes, seeds)
    finished: dict[tuple[str, int], Done] = {}
    for done in _run(split, cells, judging, jobs):
        finished[done.label, done.seed] = done
        if watch is not None:
            watch(done)
    return compare({label: _over_seeds(label, seeds, finished) for label in recipes}, rng=Rng(0))


Cell = tuple[str, Recipe]


def cells_of(recipes: Mapping[str, Recipe], seeds: Sequence[int]) -> list[Cell]:
    """Every fit that a comparison needs."""
    return [
        (label, replace(recipe, seed=seed))
        for seed in seeds
        for label, recipe in recipes.items()
        if seed == seeds[0] or is_trainable(recipe.model)
    ]


def _over_seeds(
    label: str, seeds: Sequence[int], finished: Mapping[tuple[str, int], Done]
) -> list[Evaluation]:
    """The evaluations of a label, seed by seed; where it was fitted once, that one for every seed."""
    first = finished[label, seeds[0]]
    return [e for seed in seeds for e in finished.get((label, seed), first).evaluations]


def _run(split: Split, cells: Sequence[Cell], judging: Judging, jobs: int) -> Iterator[Done]:
    """Each cell's result, as it comes."""
    if jobs == 1:
        yield from (_fit_and_judge(split, cell, judging) for cell in cells)
        return
    # Spawned, not forked: torch's threads do not survive a fork.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _start_worker, (split, judging)) as pool:
        others = set(active_children())
        try:
            with _ctrl_c_held_back():
                waiting = [pool.submit(_in_worker, cell) for cell in cells]
            for future in as_completed(waiting):
                yield future.result()
        except BrokenProcessPool as error:
            raise TrainingError(
                "A process that shared the work was killed, most likely for want of memory; use fewer jobs."
            ) from error
        except BaseException:
            # Not pool.shutdown(): it waits for fits that nobody wants any more.
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """A block in which Ctrl-C waits, also for the processes started there, until they can leave it alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_worker: tuple[Split, Judging] | None = None  # what a worker process was started with


def _start_worker(split: Split, judging: Judging) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is ended by the one that started it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    Thread(target=_leave_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _worker = (split, judging)


def _leave_with_parent() -> None:
    """End this worker when the process that started it is gone, however it went; it would wait for ever."""
    parent = parent_process()
    assert parent is not None, "workers are started by a pool"
    parent.join()
    os._exit(1)


def _in_worker(cell: Cell) -> Done:
    assert _worker is not None, "the pool starts every worker with _start_worker"
    return _fit_and_judge(_worker[0], cell, _worker[1])


def _fit_and_judge(split: Split, cell: Cell, judging: Judging) -> Done:
    label, recipe = cell
    fitted = fit(split, recipe)
    evaluations = tuple(
        evaluate(fitted.scorer, split, protocol=p, on=judging.on, k=judging.k) for p in judging.protocols
    )
    seconds = sum(row["seconds"] for row in fitted.history)
    return Done(label, recipe.seed, len(fitted.history), seconds, evaluations)
