"""Several recipes fitted with the same seeds on the same split, judged alike and compared in pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from towpath.data.split import Split
from towpath.errors import ConfigError, DataError
from towpath.evaluation.comparison import Comparison, compare
from towpath.evaluation.evaluate import evaluate, refuse_impossible
from towpath.evaluation.protocols import Protocol
from towpath.evaluation.result import Evaluation
from towpath.experiments.kept import Cell, Done, Judging, KeptCells
from towpath.experiments.pool import Work, workers
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import depends_on_seed
from towpath.models.scorer import Scorer
from towpath.rng import Rng
from towpath.worlds.truth import relevance_for


def compare_fits(
    split: Split,
    recipes: Mapping[str, Recipe],
    *,
    seeds: Sequence[int],
    judging: Judging | None = None,
    work: Work[Done] | None = None,
) -> Comparison:
    """Means over seeds of each recipe, and its paired differences to the first one.

    The split and the evaluation's negatives are the same for all; a seed changes initial values and sampling.
    A model in closed form is fitted once, whatever the seeds.
    The jobs of `work` share the fits; the numbers do not depend on how many there are, nor on how many fits
    were found in its folder.
    """
    judging, work = judging or Judging(), work or Work()
    if not recipes or not seeds:
        raise ConfigError("A comparison needs at least one model and one seed.")
    for recipe in recipes.values():  # whatever cannot be is said before the first fit, not after it
        recipe.resolve()
    if "truth" in judging.protocols:
        _truth(split, judging)
    for protocol in judging.protocols:
        refuse_impossible(split, protocol, judging.on, judging.k)
    finished = _finish(split, cells_of(recipes, seeds), judging, work)
    return compare({label: _over_seeds(label, seeds, finished) for label in recipes}, rng=Rng(0))


def cells_of(recipes: Mapping[str, Recipe], seeds: Sequence[int]) -> list[Cell]:
    """Every fit that a comparison needs."""
    return [
        (label, replace(recipe, seed=seed))
        for seed in seeds
        for label, recipe in recipes.items()
        if seed == seeds[0] or depends_on_seed(recipe.model)
    ]


Finished = dict[tuple[str, int], Done]


def _finish(split: Split, cells: Sequence[Cell], judging: Judging, work: Work[Done]) -> Finished:
    """Every cell's result by label and seed: those that were kept first, then the others as they come."""
    kept = None if work.folder is None else KeptCells(work.folder / "fits", split.fingerprint, judging)
    finished: Finished = {}
    missing = []
    for cell in cells:
        done = kept.find(cell) if kept else None
        if done is None:
            missing.append(cell)
        else:
            finished[done.label, done.seed] = done
            work.watch(done)
    if missing:
        with workers(_fit_and_judge, (split, judging), work.jobs) as results:
            for cell, done in results(missing):
                if kept:
                    kept.keep(cell, done)
                finished[done.label, done.seed] = done
                work.watch(done)
    return finished


def _over_seeds(label: str, seeds: Sequence[int], finished: Finished) -> list[Evaluation]:
    """The evaluations of a label, seed by seed; where it was fitted once, that one for every seed."""
    first = finished[label, seeds[0]]
    return [e for seed in seeds for e in finished.get((label, seed), first).evaluations]


def _fit_and_judge(shared: tuple[Split, Judging], cell: Cell) -> tuple[Cell, Done]:
    split, judging = shared
    label, recipe = cell
    fitted = fit(split, recipe)
    evaluations = tuple(_judged(fitted.scorer, split, p, judging) for p in judging.protocols)
    seconds = sum(row["seconds"] for row in fitted.history)
    return cell, Done(label, recipe.seed, len(fitted.history), seconds, evaluations)


def _judged(scorer: Scorer, split: Split, protocol: Protocol, judging: Judging) -> Evaluation:
    relevance = _truth(split, judging) if protocol == "truth" else None
    return evaluate(scorer, split, protocol=protocol, on=judging.on, k=judging.k, relevance=relevance)


def _truth(split: Split, judging: Judging) -> NDArray[np.float32]:
    """The true relevance of every pair of the split."""
    if judging.truth is None:
        raise DataError(
            "The protocol truth needs the folder of a simulated world, which holds its truth beside the "
            "events; make one by towpath simulate, or use the protocol full."
        )
    return relevance_for(split.train, judging.truth)
