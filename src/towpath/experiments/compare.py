"""Several recipes fitted with the same seeds on the same split, evaluated alike and compared in pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from towpath.data.split import Split
from towpath.diagnostics.contrast import lists_for_evidence, vouch_for
from towpath.errors import ConfigError, DataError
from towpath.evaluation.comparison import Comparison, compare
from towpath.evaluation.evaluate import evaluate, refuse_impossible
from towpath.evaluation.protocols import EvalProtocol
from towpath.evaluation.result import Evaluation
from towpath.experiments.pool import Work, workers
from towpath.experiments.result_store import ResultStore, open_store
from towpath.experiments.run_result import (
    EvaluationConfig,
    RunResult,
    RunSpec,
    processor_seconds,
    result_of,
)
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
    evaluation: EvaluationConfig | None = None,
    work: Work[RunResult] | None = None,
) -> Comparison:
    """Means over seeds of each recipe, and its paired differences to the first one.

    The split and the negatives of the evaluation are the same for all; a seed changes initial values and
    sampling. A model in closed form is fitted once, whatever the seeds. The numbers do not depend on the
    number of processes, nor on how many results were in the store already.
    """
    evaluation, work = evaluation or EvaluationConfig(), work or Work()
    if not recipes or not seeds:
        raise ConfigError("A comparison needs at least one model and one seed.")
    for recipe in recipes.values():  # wrong settings are reported before the first fit
        recipe.resolve()
    recipes = {label: recipe.suited_to(split.train) for label, recipe in recipes.items()}
    if "truth" in evaluation.protocols:
        _truth(split, evaluation)
    for protocol in evaluation.protocols:
        refuse_impossible(split, protocol, evaluation.on, evaluation.k)
    runs = _run_all(split, run_specs(recipes, seeds), evaluation, work)
    compared = compare({label: _over_seeds(label, seeds, runs) for label in recipes}, rng=Rng(0))
    return _with_evidence(compared, {label: runs[label, seeds[0]].lists for label in recipes}, split)


def _with_evidence(
    compared: Comparison, lists: Mapping[str, NDArray[np.int64] | None], split: Split
) -> Comparison:
    """The comparison with what the log has seen of the lists of each label's first seed."""
    known = {label: found for label, found in lists.items() if found is not None}
    if len(known) < len(lists):
        return compared
    try:
        vouched = vouch_for(known, split)
    except DataError as error:  # nothing to look at in this split
        return replace(compared, warnings=(str(error),))
    return replace(compared, evidence=vouched.to_json(), warnings=vouched.warnings)


def run_specs(recipes: Mapping[str, Recipe], seeds: Sequence[int]) -> list[RunSpec]:
    """Every fit that a comparison needs."""
    return [
        RunSpec(label, replace(recipe, seed=seed))
        for seed in seeds
        for label, recipe in recipes.items()
        if seed == seeds[0] or depends_on_seed(recipe.model)
    ]


Runs = dict[tuple[str, int], RunResult]  # by label and seed


def _run_all(
    split: Split, specs: Sequence[RunSpec], evaluation: EvaluationConfig, work: Work[RunResult]
) -> Runs:
    """The result of every run: first those that are stored, then the others as they finish."""
    store = None if work.folder is None else open_store(work.folder)
    runs: Runs = {}
    missing = []
    for spec in specs:
        result = _stored(store, spec, split, evaluation)
        if result is None:
            missing.append(spec)
        else:
            runs[spec.label, spec.recipe.seed] = result
            work.on_result(result)
    if missing:
        with workers(_fit_and_evaluate, (split, evaluation), work.jobs) as results:
            for spec, result in results(missing):
                if store is not None:
                    store.put(spec.key(store, split.fingerprint, evaluation), result)
                runs[spec.label, spec.recipe.seed] = result
                work.on_result(result)
    return runs


def _stored(
    store: ResultStore | None, spec: RunSpec, split: Split, evaluation: EvaluationConfig
) -> RunResult | None:
    """The stored result of this run under its own label, if there is one."""
    if store is None:
        return None
    result = store.get(RunResult, spec.key(store, split.fingerprint, evaluation).name)
    return None if result is None else replace(result, label=spec.label)


def _over_seeds(label: str, seeds: Sequence[int], runs: Runs) -> list[Evaluation]:
    """The evaluations of a label, seed by seed; where it was fitted once, that one for every seed."""
    first = runs[label, seeds[0]]
    return [e for seed in seeds for e in runs.get((label, seed), first).evaluations]


def _fit_and_evaluate(shared: tuple[Split, EvaluationConfig], spec: RunSpec) -> tuple[RunSpec, RunResult]:
    split, evaluation = shared
    before = processor_seconds()
    fitted = fit(split, spec.recipe)
    evaluations = tuple(_evaluate(fitted.scorer, split, p, evaluation) for p in evaluation.protocols)
    lists = lists_for_evidence(fitted.scorer, split, evaluation.k)
    result = result_of(spec, fitted, evaluations, processor_seconds() - before)
    return spec, replace(result, lists=lists)


def _evaluate(
    scorer: Scorer, split: Split, protocol: EvalProtocol, evaluation: EvaluationConfig
) -> Evaluation:
    relevance = _truth(split, evaluation) if protocol == "truth" else None
    return evaluate(scorer, split, protocol=protocol, on=evaluation.on, k=evaluation.k, relevance=relevance)


def _truth(split: Split, evaluation: EvaluationConfig) -> NDArray[np.float32]:
    """The true relevance of every pair of the split."""
    if evaluation.truth is None:
        raise DataError(
            "The protocol truth needs the folder of a simulated world, which holds its truth next to the "
            "events; make one by towpath simulate create, or use the protocol full."
        )
    return relevance_for(split.train, evaluation.truth)
