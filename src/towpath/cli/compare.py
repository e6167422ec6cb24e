"""towpath compare: several models or methods on the same split and seeds, as paired differences."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from towpath.cli.compared import read_tuned, recipes_of, say_other_data
from towpath.cli.options import Data, HowMany, Jobs, Preparation, Training, names_in, parse_settings, seeds_in
from towpath.cli.output import Interrupted, Listing, Output, stopped
from towpath.cli.prepare import read_data, split_data, use_threads
from towpath.memory import limit_memory

if TYPE_CHECKING:
    from towpath.data.split import Part, Split
    from towpath.evaluation.comparison import Comparison
    from towpath.evaluation.protocols import EvalProtocol
    from towpath.experiments.run_result import EvaluationConfig, RunResult
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
        str, typer.Option("--protocol", "--protocols", help="One or more of full, sampled, paper, truth.")
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
        typer.Option(
            metavar="DIR",
            help="Store results and tables here; the same command again fits only what is missing.",
        ),
    ] = None


def compare(
    data: Data, options: CompareOptions, training: Training, prepare: Preparation, output: Output
) -> None:
    """Compare models or methods: means over seeds, and paired differences with 95 % intervals.

    --set KEY=VALUE holds for all; --set mf.KEY=VALUE for one model or method. Models in closed form are not
    trained, so there is one row for each, whatever the methods.
    """
    use_threads(training.threads)
    limit_memory(training.memory)
    from towpath.experiments.result_store import refuse_foreign

    tuned = read_tuned(options.tuned or ())
    recipes = recipes_of(_names(options), parse_settings(training.set), tuned, training.device)
    for recipe in recipes.values():
        recipe.resolve()  # wrong settings are reported before the data are read, which may take long
    if options.out is not None:
        refuse_foreign(options.out)
    request = _Request(recipes, seeds_in(options.seeds), _evaluation_config(data, options))
    try:
        split = split_data(read_data(data, prepare, output).interactions, prepare)
        say_other_data(tuned, split.fingerprint, output)
        comparison = _compare(split, request, options, output)
    except KeyboardInterrupt:
        if options.out is None:
            raise
        raise Interrupted(stopped(options.out)) from None
    _show(comparison, recipes, options, output)


def _names(options: CompareOptions) -> tuple[list[str], list[str]]:
    return names_in(options.models, "--models"), names_in(options.methods, "--methods")


@dataclass(frozen=True)
class _Request:
    """The options as what a comparison takes."""

    recipes: "dict[str, Recipe]"
    seeds: list[int]
    evaluation: "EvaluationConfig"


def _evaluation_config(data: str, options: CompareOptions) -> "EvaluationConfig":
    from towpath.experiments.run_result import EvaluationConfig
    from towpath.worlds.truth import truth_next_to

    return EvaluationConfig(
        protocols=cast(
            "list[EvalProtocol]", names_in(options.protocols, "--protocol")
        ),  # checked with the data
        on=cast("Part", options.on),
        k=options.k,
        truth=truth_next_to(data),
    )


def _compare(split: "Split", request: _Request, options: CompareOptions, output: Output) -> "Comparison":
    from towpath.experiments.compare import compare_fits, run_specs
    from towpath.experiments.pool import Work

    with output.progress("Fitting", len(run_specs(request.recipes, request.seeds))) as step:

        def on_result(run: "RunResult") -> None:
            step(f"{run.label}, seed {run.seed}: {run.epochs} epochs")

        work = Work(jobs=options.jobs, folder=options.out, on_result=on_result)
        return compare_fits(
            split, request.recipes, seeds=request.seeds, evaluation=request.evaluation, work=work
        )


def _show(
    comparison: "Comparison", recipes: "dict[str, Recipe]", options: CompareOptions, output: Output
) -> None:
    result = comparison.to_json()
    result["rows"] = [
        {"model": recipes[row["label"]].model, "method": recipes[row["label"]].method, **row}
        for row in result["rows"]
    ]
    seeds = "one seed" if comparison.seeds == 1 else f"{comparison.seeds} seeds"
    about = f"on {comparison.on}, k = {comparison.k}, {comparison.users:,} users, {seeds}"
    means = ("label", "protocol", "metric", "mean", "sd")
    gaps = ("a", "b", "protocol", "metric", "mean", "low", "high")
    tables = [Listing(f"Means {about}", means, [[row[name] for name in means] for row in result["rows"]])]
    if result["differences"]:
        rows = [[row[name] for name in gaps] for row in result["differences"]]
        how = result["differences"][0]["how"]
        tables.append(Listing(f"Differences a - b; low and high: {how}", gaps, rows))
    tables += _evidence_table(result["evidence"])
    if options.out is not None:
        _write(result, tables, options.out)
    output.show(result, *tables)
    for warning in comparison.warnings:
        output.say(f"Warning: {warning}")


def _evidence_table(evidence: dict[str, Any]) -> list[Listing]:
    """How much of the lists of each label's first seed the held-out parts have seen."""
    columns = ("label", "shown to user", "similar users", "no evidence", "clicks per slot")
    rows = [
        (
            label,
            found["shown_to_user"],
            found["similar_users"],
            found["item_known"] + found["never_shown"],
            "{low:.3f} to {high:.3f}".format(**found["expected_clicks"]),
        )
        for label, found in evidence.get("models", {}).items()
    ]
    return [Listing("What the log has seen, shares of slots", columns, rows)] if rows else []


def _write(result: dict[str, Any], tables: list[Listing], folder: Path) -> None:
    """The numbers as comparison.json and comparison.md."""
    from towpath.files import write_text

    write_text(folder / "comparison.json", json.dumps(result, indent=2) + "\n")
    write_text(folder / "comparison.md", "\n".join(table.markdown() for table in tables))
