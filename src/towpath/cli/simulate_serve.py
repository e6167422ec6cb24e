"""towpath simulate serve: the closed loop through a real server, and its A/B test next to the truth."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from towpath.cli.compared import recipes_of
from towpath.cli.options import Training, names_in, parse_settings
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import use_threads
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
        typer.Option(help="Keep the log, its export, the models and the page in this new folder."),
    ] = None


def serve(folder: WorldFolder, options: ServedOptions, training: Training, output: Output) -> None:
    """Serve a simulated world over HTTP, retrain every night, and compare the A/B test with the truth.

    --set KEY=VALUE holds for all arms; --set ipw.KEY=VALUE for one.
    """
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
    from towpath.abtest.page import experiment_page
    from towpath.abtest.served_loop import ServedLoopSettings, Start, fresh_folder, run_served_loop
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
    write_page(experiment_page(found.experiment), out / "experiment.html")
    _show(found, options, output)


def _show(found: "ServedLoop", options: ServedOptions, output: Output) -> None:
    weeks, true = found.weeks(), found.true_lifts()
    result = {
        "days": [asdict(day) for day in found.days],
        "weeks": weeks,
        "models": {arm: {**asdict(weekly), "better": weekly.better} for arm, weekly in found.models.items()},
        "true_lifts": true,
        "experiment": found.experiment.to_json(),
        "out": None if options.out is None else str(options.out),
    }
    longest = max(map(len, weeks.values()))
    headings = ("arm", *(f"week {n}" for n in range(1, longest + 1)))
    by_week = [(arm, *(f"{share:.1%}" for share in shares)) for arm, shares in weeks.items()]
    compared = [
        (arm, task, *(f"{value:.2f}" for value in values))
        for arm, weekly in found.models.items()
        for task, values in (("before the first day", weekly.start), ("after the last", weekly.end))
    ]
    clicks = [lift for lift in found.experiment.lifts if lift.metric == "click_rate"]
    rows = [
        (
            lift.arm,
            f"{lift.relative.mean:+.1%} ({lift.relative.low:+.1%} to {lift.relative.high:+.1%})",
            f"{true[lift.arm]['click_rate']:+.1%}",
        )
        for lift in clicks
        if lift.arm in true
    ]
    output.show(
        result,
        Listing("True relevance of the lists, as a share of the best possible", headings, by_week),
        Listing(
            "True clicks on a list by the models of each week, for the same users and candidates",
            ("arm", "candidates", *headings[1:]),
            compared,
        ),
        Listing(f"A/B test: {found.experiment.verdict}", ("arm", "lift of the click rate", "true"), rows),
    )
