"""towpath simulate serve: the closed loop through a real server, and its A/B test next to the truth."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.compared import recipes_of
from towpath.cli.options import Training, names_in, parse_settings
from towpath.cli.output import Listing, Output, json_text
from towpath.cli.prepare import use_threads
from towpath.cli.serve import refuse_without_server
from towpath.errors import ConfigError
from towpath.memory import limit_memory

if TYPE_CHECKING:
    from towpath.abtest.served_loop import ServedLoop

WorldFolder = Annotated[Path, typer.Argument(metavar="WORLD", help="The folder that simulate create wrote.")]


@dataclass(frozen=True)
class ServedOptions:
    """Which arms are served, for how long."""

    arms: Annotated[str, typer.Option(help="Methods with commas; the first is the control.")] = (
        "plain,ipw,transport"
    )
    days: Annotated[int, typer.Option(min=1, help="Days to simulate.")] = 21
    model: Annotated[str, typer.Option(help="The model that all methods train.")] = "mf"
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Length of the lists.")] = 10
    epsilon: Annotated[float, typer.Option(min=0, max=1, help="Exploration of the server.")] = 0.05
    retrain_every: Annotated[
        int, typer.Option(min=0, help="Train and swap all arms every so many nights; 0: never.")
    ] = 1
    seed: Annotated[int, typer.Option(min=0, help="Seed of fits, visits, clicks and orders.")] = 0
    out: Annotated[
        Path | None,
        typer.Option(help="Keep log, export, models, page and numbers in this new folder."),
    ] = None


def serve(folder: WorldFolder, options: ServedOptions, training: Training, output: Output) -> None:
    """Serve a simulated world over HTTP, retrain every night, and compare the A/B test with the truth.

    --set KEY=VALUE holds for all arms; --set ipw.KEY=VALUE for one.
    """
    refuse_without_server()
    use_threads(training.threads)
    limit_memory(training.memory)
    from towpath.files import is_free, new_folder, scratch_folder

    if options.out is not None:
        if not is_free(options.out):
            raise ConfigError(f"{options.out} already exists; choose another --out.")
        with new_folder(options.out) as partial:  # so that one that is stopped leaves nothing half-made
            _run(folder, options, training, output, partial)
        return
    with scratch_folder("loop-") as scratch:
        _run(folder, options, training, output, scratch / "loop")


def _run(world: Path, options: ServedOptions, training: Training, output: Output, out: Path) -> None:
    from towpath.abtest.loop_page import loop_page
    from towpath.abtest.served_loop import ServedLoopSettings, Start, fresh_folder, run_served_loop
    from towpath.files import write_text
    from towpath.reports.page import write_page
    from towpath.worlds.store import load_world

    methods = names_in(options.arms, "--arms")
    recipes = recipes_of(([options.model], methods), parse_settings(training.set), {}, training.device)
    arms = dict(zip(methods, recipes.values(), strict=True))
    told = {"days": options.days, "retrain_every": options.retrain_every, "epsilon": options.epsilon}
    settings = ServedLoopSettings.model_validate({**told, "visitors": {"k": options.k}})
    with output.working(f"Reading {world}"):
        start = Start(load_world(world)[0], arms, settings, options.seed, fresh_folder(out))
    nights = (options.days - 1) // options.retrain_every if options.retrain_every else 0
    with output.progress("Serving", len(arms) + options.days + nights) as step:
        found = run_served_loop(start, step)
    write_page(loop_page(found), out / "experiment.html")
    result = _result(found) | {"out": None if options.out is None else str(options.out)}
    write_text(out / "results.json", json_text(result) + "\n")
    _show(found, result, output)


def _result(found: "ServedLoop") -> dict[str, Any]:  # a JSON object
    return {
        "days": [asdict(day) for day in found.days],
        "weeks": found.weeks(),
        "models": {arm: models.to_json() for arm, models in found.models.items()},
        "true_lifts": found.true_lifts(),
        "experiment": found.experiment.to_json(),
    }


def _show(found: "ServedLoop", result: dict[str, Any], output: Output) -> None:
    from towpath.abtest.loop_page import learning_sentences, models_table, shares_table, truth_table

    shares, models, truth = shares_table(found), models_table(found), truth_table(found)
    learned = "\n".join([models.full_caption, *learning_sentences(found)])
    test = f"A/B test: {found.experiment.verdict}\n{truth.full_caption}"
    titles = {shares.full_caption: shares, learned: models, test: truth}
    output.show(result, *(Listing(title, table.columns, table.shown()) for title, table in titles.items()))
