"""towpath sweep: how the metrics of a method depend on one of its settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from towpath.cli.compared import recipes_of
from towpath.cli.options import (
    Data,
    HowMany,
    Jobs,
    Preparation,
    Training,
    names_in,
    parse_settings,
    seeds_in,
)
from towpath.cli.output import Interrupted, Listing, Output, stopped
from towpath.cli.prepare import read_data, split_data, use_threads
from towpath.memory import limit_memory

if TYPE_CHECKING:
    from towpath.data.split import Part, Split
    from towpath.evaluation.comparison import Comparison
    from towpath.evaluation.protocols import EvalProtocol
    from towpath.experiments.run_result import RunResult
    from towpath.experiments.sweep import SweepResult
    from towpath.methods.recipe import Recipe


@dataclass(frozen=True)
class SweepOptions:
    """What is varied, how often it is fitted, and by which numbers it is evaluated."""

    setting: Annotated[str, typer.Option(help="The setting of the model, the fit loop or the method.")]
    values: Annotated[str, typer.Option(help="Its values, with commas between them.")]
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="The folder for results, page and figures; run again to resume."),
    ]
    model: Annotated[str, typer.Option(help="The model, as in towpath fit.")] = "mf"
    method: Annotated[str, typer.Option(help="How it is trained, as in towpath fit.")] = "plain"
    reference: Annotated[
        str, typer.Option(help="Methods to draw as lines next to it, with commas; such as plain.")
    ] = ""
    seeds: Annotated[str, typer.Option(help="How many (3: seeds 0, 1, 2) or which (100,101).")] = "3"
    protocols: Annotated[
        str, typer.Option("--protocol", "--protocols", help="One or more of full, sampled, paper.")
    ] = "full,sampled"
    on: Annotated[str, typer.Option(help="test or validation.")] = "test"
    k: HowMany = 10
    jobs: Jobs = 1


def sweep(
    data: Data, options: SweepOptions, training: Training, prepare: Preparation, output: Output
) -> None:
    """Draw how a method depends on one setting: means and spread over seeds, for every protocol.

    --set KEY=VALUE holds for all; --set ipw.KEY=VALUE for one method.
    """
    use_threads(training.threads)
    limit_memory(training.memory)
    from towpath.experiments.result_store import refuse_earlier
    from towpath.experiments.sweep import SweepResult, labelled, sweep_recipes
    from towpath.files import refuse_unwritable

    methods = names_in(",".join(filter(None, [options.method, options.reference])), "--reference")
    all_recipes = recipes_of(([options.model], methods), parse_settings(training.set), {}, training.device)
    base, *others = all_recipes.values()
    references = dict(zip(methods[1:], others, strict=True))
    for recipe in others:
        recipe.resolve()
    swept = sweep_recipes(base, options.setting, names_in(options.values, "--values"))
    recipes = labelled(options.setting, swept) | references
    refuse_unwritable(options.out / "index.html")
    refuse_earlier(options.out)
    try:
        split = split_data(read_data(data, prepare, output).interactions, prepare)
        comparison = _fit_all(split, recipes, options, output)
    except KeyboardInterrupt:
        raise Interrupted(stopped(options.out)) from None
    result = SweepResult(base, options.setting, tuple(swept), tuple(references), comparison)
    _show(result, data, options.out, output)


def _fit_all(
    split: "Split", recipes: "dict[str, Recipe]", options: SweepOptions, output: Output
) -> "Comparison":
    from towpath.experiments.compare import compare_fits, run_specs
    from towpath.experiments.pool import Work
    from towpath.experiments.run_result import EvaluationConfig

    seeds = seeds_in(options.seeds)
    evaluation = EvaluationConfig(
        protocols=cast("list[EvalProtocol]", names_in(options.protocols, "--protocol")),  # checked there
        on=cast("Part", options.on),
        k=options.k,
    )
    with output.progress("Fitting", len(run_specs(recipes, seeds))) as step:

        def on_result(run: "RunResult") -> None:
            step(f"{run.label}, seed {run.seed}: {run.epochs} epochs")

        work = Work(jobs=options.jobs, folder=options.out, on_result=on_result)
        return compare_fits(split, recipes, seeds=seeds, evaluation=evaluation, work=work)


def _show(result: "SweepResult", data: str, folder: Path, output: Output) -> None:
    from towpath.reports.sweep_page import sweep_point_table, write_sweep

    pages = write_sweep(result, data, folder)
    table = sweep_point_table(result)
    rows = [[cell, *texts[1:]] for (cell, *_), texts in zip(table.rows, table.shown(), strict=True)]
    output.show(
        result.to_json() | {"files": [str(path) for path in pages]},
        Listing(table.full_caption, table.columns, rows),
    )
    output.say(f"The page is {pages[0]}")
