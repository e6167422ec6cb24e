"""towpath compare: several models or methods on the same split and seeds, as paired differences."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from towpath.cli.compared import read_tuned, recipes_of, say_other_data
from towpath.cli.options import Data, HowMany, Jobs, Preparation, Training, names_in, parse_settings, seeds_in
from towpath.cli.output import Interrupted, Listing, Output
from towpath.cli.prepare import read_data, split_data, use_threads
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.data.split import Part, Split
    from towpath.evaluation.comparison import Comparison
    from towpath.evaluation.protocols import EvalProtocol
    from towpath.experiments.result_store import EvaluationConfig, RunResult
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
    jobs: Jobs = 1
    tuned: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Use the best settings of a towpath tune folder; repeat for more."),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep finished fits and the tables; if it is there, it goes on."),
    ] = None


def compare(
    data: Data, options: CompareOptions, training: Training, prepare: Preparation, output: Output
) -> None:
    """Compare models or methods: means over seeds, and paired differences with 95 % intervals.

    --set KEY=VALUE holds for all; --set mf.KEY=VALUE for one model or method. Models in closed form are not
    trained, so there is one row for each, whatever the methods.
    """
    use_threads(training.threads)
    tuned = read_tuned(options.tuned or ())
    recipes = recipes_of(_names(options), parse_settings(training.set), tuned, training.device)
    for recipe in recipes.values():
        recipe.resolve()  # a wrong setting is said before the data are read, which may take long
    if options.out is not None:
        _refuse_foreign(options.out)
    asked = _Asked(recipes, seeds_in(options.seeds), _evaluation_config(options))
    try:
        split = split_data(read_data(data, prepare, output).interactions, prepare)
        say_other_data(tuned, split.fingerprint, output)
        comparison = _compare(split, asked, options, output)
    except KeyboardInterrupt:
        if options.out is None:
            raise
        raise Interrupted(
            f"Stopped; go on with the same command ({options.out} keeps what is finished)."
        ) from None
    _show(comparison, recipes, options, output)


def _names(options: CompareOptions) -> tuple[list[str], list[str]]:
    return names_in(options.models, "--models"), names_in(options.methods, "--methods")


@dataclass(frozen=True)
class _Asked:
    """What the options come to."""

    recipes: "dict[str, Recipe]"
    seeds: list[int]
    evaluation: "EvaluationConfig"


def _evaluation_config(options: CompareOptions) -> "EvaluationConfig":
    from towpath.experiments.result_store import EvaluationConfig

    return EvaluationConfig(
        protocols=cast(
            "list[EvalProtocol]", names_in(options.protocols, "--protocol")
        ),  # checked with the data
        on=cast("Part", options.on),
        k=options.k,
    )


def _compare(split: "Split", asked: _Asked, options: CompareOptions, output: Output) -> "Comparison":
    from towpath.experiments.compare import cells_of, compare_fits
    from towpath.experiments.pool import Work

    with output.progress("Fitting", len(cells_of(asked.recipes, asked.seeds))) as step:

        def watch(done: "RunResult") -> None:
            step(f"{done.label}, seed {done.seed}: {done.epochs} epochs")

        work = Work(jobs=options.jobs, folder=options.out, watch=watch)
        return compare_fits(split, asked.recipes, seeds=asked.seeds, evaluation=asked.evaluation, work=work)


def _refuse_foreign(folder: Path) -> None:
    """Nothing, unless a comparison cannot be kept at `folder`."""
    from towpath.files import refuse_unwritable

    refuse_unwritable(folder / "fits")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "fits").is_dir():
        raise ConfigError(f"{folder} is no folder of a comparison: it has no fits; choose another --out.")


def _show(
    comparison: "Comparison", recipes: "dict[str, Recipe]", options: CompareOptions, output: Output
) -> None:
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
    if options.out is not None:
        _write(result, tables, options.out)
    output.show(result, *tables)


def _write(result: dict[str, Any], tables: list[Listing], folder: Path) -> None:
    """The numbers as comparison.json and comparison.md."""
    from towpath.files import write_text

    write_text(folder / "comparison.json", json.dumps(result, indent=2) + "\n")
    write_text(folder / "comparison.md", "\n".join(table.markdown() for table in tables))
