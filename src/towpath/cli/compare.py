"""towpath compare: several models or methods on the same split and seeds, as paired differences."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from towpath.cli.options import Data, HowMany, Preparation, Training, names_in, parse_settings, seeds_in
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import read_data, split_data, use_threads
from towpath.errors import unknown_name

if TYPE_CHECKING:
    from towpath.data.split import Part
    from towpath.evaluation.comparison import Comparison
    from towpath.evaluation.protocols import Protocol
    from towpath.experiments.compare import Done
    from towpath.methods.recipe import Recipe


@dataclass(frozen=True)
class CompareOptions:
    """What is compared, how often, and by which numbers."""

    models: Annotated[
        str, typer.Option("--models", "--model", help="One or more, with commas; the first is the baseline.")
    ] = "mf"
    methods: Annotated[
        str,
        typer.Option("--methods", "--method", help="One or more, with commas; the first is the baseline."),
    ] = "plain"
    seeds: Annotated[str, typer.Option(help="How many (3: seeds 0, 1, 2) or which (100,101).")] = "3"
    protocols: Annotated[
        str, typer.Option("--protocol", "--protocols", help="One or more of full, sampled, paper.")
    ] = "full"
    on: Annotated[str, typer.Option(help="test or validation.")] = "test"
    k: HowMany = 10
    jobs: Annotated[int, typer.Option(min=1, help="Fits at the same time, each on one thread.")] = 1


def compare(
    data: Data, options: CompareOptions, training: Training, prepare: Preparation, output: Output
) -> None:
    """Compare models or methods: means over seeds, and paired differences with 95 % intervals.

    --set KEY=VALUE holds for all; --set mf.KEY=VALUE for one model or method.
    """
    use_threads(training.threads)
    from towpath.experiments.compare import Judging, cells_of, compare_fits

    recipes = _recipes(options, parse_settings(training.set))
    for recipe in recipes.values():
        recipe.resolve()  # a wrong setting is said before the data are read, which may take long
    seeds = seeds_in(options.seeds)
    judging = Judging(
        protocols=cast("list[Protocol]", names_in(options.protocols, "--protocol")),  # checked there
        on=cast("Part", options.on),
        k=options.k,
    )
    split = split_data(read_data(data, prepare, output).interactions, prepare)
    with output.progress("Fitting", len(cells_of(recipes, seeds))) as step:

        def watch(done: "Done") -> None:
            step(f"{done.label}, seed {done.seed}: {done.epochs} epochs")

        comparison = compare_fits(
            split, recipes, seeds=seeds, judging=judging, watch=watch, jobs=options.jobs
        )
    _show(comparison, recipes, output)


def _recipes(options: CompareOptions, settings: dict[str, Any]) -> "dict[str, Recipe]":
    """One recipe for each pair of model and method, called by what tells it from the others."""
    from towpath.methods.recipe import Recipe

    models, methods = names_in(options.models, "--models"), names_in(options.methods, "--methods")
    _refuse_strangers(settings, [*models, *methods])
    return {
        _label(model, method, options): Recipe(model, method, _settings_of((model, method), settings))
        for model in models
        for method in methods
    }


def _label(model: str, method: str, options: CompareOptions) -> str:
    if "," not in options.methods:
        return model
    return method if "," not in options.models else f"{model} {method}"


def _settings_of(names: tuple[str, str], settings: dict[str, Any]) -> dict[str, Any]:
    """The settings for all, then those that name this model or method."""
    mine = {key: value for key, value in settings.items() if "." not in key}
    for key, value in settings.items():
        owner, dot, rest = key.partition(".")
        if dot and owner in names:
            mine[rest] = value
    return mine


def _refuse_strangers(settings: dict[str, Any], names: list[str]) -> None:
    for key in settings:
        owner, dot, _ = key.partition(".")
        if dot and owner not in names:
            raise unknown_name("compared model or method", owner, names)


def _show(comparison: "Comparison", recipes: "dict[str, Recipe]", output: Output) -> None:
    result = comparison.to_json()
    result["rows"] = [
        {"model": recipes[row["label"]].model, "method": recipes[row["label"]].method, **row}
        for row in result["rows"]
    ]
    seeds = "one seed" if comparison.seeds == 1 else f"{comparison.seeds} seeds"
    how = f"on {comparison.on}, k = {comparison.k}, {comparison.users:,} users, {seeds}"
    means = ("label", "protocol", "metric", "mean", "sd")
    gaps = ("a", "b", "protocol", "metric", "mean", "low", "high")
    tables = [Listing(f"Means {how}", means, [[row[name] for name in means] for row in result["rows"]])]
    if result["differences"]:
        rows = [[row[name] for name in gaps] for row in result["differences"]]
        tables.append(Listing("Differences a - b, with 95 % intervals", gaps, rows))
    output.show(result, *tables)
