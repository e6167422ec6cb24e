"""Several recipes fitted with the same seeds on the same split, evaluated alike and compared in pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from towpath.data.split import Split
from towpath.errors import ConfigError
from towpath.evaluation.comparison import Comparison, compare
from towpath.evaluation.evaluate import evaluate, refuse_impossible
from towpath.evaluation.result import Evaluation
from towpath.experiments.pool import Work, workers
from towpath.experiments.result_store import EvaluationConfig, ResultStore, RunResult, RunSpec
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import depends_on_seed
from towpath.rng import Rng


def compare_fits(
    split: Split,
    recipes: Mapping[str, Recipe],
    *,
    seeds: Sequence[int],
    evaluation: EvaluationConfig | None = None,
    work: Work[RunResult] | None = None,
) -> Comparison:
    """Means over seeds of each recipe, and its paired differences to the first one.

    The split and the evaluation's negatives are the same for all; a seed changes initial values and sampling.
    A model in closed form is fitted once, whatever the seeds.
    The jobs of `work` share the fits; the numbers do not depend on how many there are, nor on how many fits
    were found in its folder.
    """
    evaluation, work = evaluation or EvaluationConfig(), work or Work()
    if not recipes or not seeds:
        raise ConfigError("A comparison needs at least one model and one seed.")
    for recipe in recipes.values():  # whatever cannot be is said before the first fit, not after it
        recipe.resolve()
    for protocol in evaluation.protocols:
        refuse_impossible(split, protocol, evaluation.on, evaluation.k)
    finished = _finish(split, cells_of(recipes, seeds), evaluation, work)
    return compare({label: _over_seeds(label, seeds, finished) for label in recipes}, rng=Rng(0))


def cells_of(recipes: Mapping[str, Recipe], seeds: Sequence[int]) -> list[RunSpec]:
    """Every fit that a comparison needs."""
    return [
        (label, replace(recipe, seed=seed))
        for seed in seeds
        for label, recipe in recipes.items()
        if seed == seeds[0] or depends_on_seed(recipe.model)
    ]


Finished = dict[tuple[str, int], RunResult]


def _finish(
    split: Split, cells: Sequence[RunSpec], evaluation: EvaluationConfig, work: Work[RunResult]
) -> Finished:
    """Every cell's result by label and seed: those that were kept first, then the others as they come."""
    kept = None if work.folder is None else ResultStore(work.folder / "fits", split.fingerprint, evaluation)
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
        with workers(_fit_and_evaluate, (split, evaluation), work.jobs) as results:
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


def _fit_and_evaluate(shared: tuple[Split, EvaluationConfig], cell: RunSpec) -> tuple[RunSpec, RunResult]:
    split, evaluation = shared
    label, recipe = cell
    fitted = fit(split, recipe)
    evaluations = tuple(
        evaluate(fitted.scorer, split, protocol=p, on=evaluation.on, k=evaluation.k)
        for p in evaluation.protocols
    )
    seconds = sum(row["seconds"] for row in fitted.history)
    return cell, RunResult(label, recipe.seed, len(fitted.history), seconds, evaluations)
