"""towpath paper: the tables and figures of the paper, one command each."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.groups import spread
from towpath.cli.options import Jobs, parse_settings, seeds_in
from towpath.cli.output import Interrupted, Listing, Output, stopped
from towpath.cli.prepare import use_threads

if TYPE_CHECKING:
    from towpath.experiments.paper.experiment import Experiment
    from towpath.experiments.paper.jobs import JobStatus
    from towpath.experiments.paper.run import PaperConfig, Plan

Names = Annotated[
    list[str], typer.Argument(metavar="NAME...", help="Tables and figures (towpath paper list), or all.")
]
PaperFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of towpath paper run --out.")]


@dataclass(frozen=True)
class PaperOptions:
    """What is run, with how many seeds, on which data, and where results are stored."""

    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for results and pages; run again to resume.")
    ]
    quick: Annotated[
        bool, typer.Option("--quick", help="Two seeds, short fits, small data: to check that all works.")
    ] = False
    seeds: Annotated[
        str | None, typer.Option(help="How many (3) or which (100,101); by default those of the experiment.")
    ] = None
    jobs: Jobs = 1
    data_dir: Annotated[
        Path | None, typer.Option(envvar="TOWPATH_DATA", help="Where local copies of built-in datasets lie.")
    ] = None
    data: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this data set; repeat for more.")
    ] = None
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", "--columns", metavar="NAME", help="Only this method; repeat for more."),
    ] = None
    tuned: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Use the best settings of towpath tune: a folder of its folders."),
    ] = None
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of every model that is trained."),
    ] = None
    code: Annotated[
        str,
        typer.Option(
            help="Treat code under this name as equal, instead of telling it by a digest of its source."
        ),
    ] = ""


def list_experiments(output: Output) -> None:
    """List the tables and figures, and what each of them fits."""
    from towpath.experiments.paper.catalogue import EXPERIMENTS
    from towpath.models.registry import depends_on_seed

    rows = []
    for one in EXPERIMENTS.values():
        counted = [
            one.seeds if depends_on_seed(recipe.model) else 1
            for benchmark in one.benchmarks
            for recipe in one.columns_on(benchmark).values()
        ]
        rows.append((one.name, sum(counted), one.seeds, one.title))
    columns = ("name", "fits", "seeds", "title")
    result = {
        "experiments": [
            {
                **dict(zip(columns, row, strict=True)),
                "data": list(one.benchmarks),
                "columns": list(one.methods),
                "sweeps": [sweep.name for sweep in one.sweeps],
            }
            for row, one in zip(rows, EXPERIMENTS.values(), strict=True)
        ]
    }
    output.show(result, Listing("The paper's tables and figures", columns, rows))


def plan(names: Names, options: PaperOptions, output: Output) -> None:
    """Say how many fits tables and figures need, how many are stored, and how many processor hours are left.

    Hours come from stored timings of the same fit, or else of its kind; where there are none, from the
    published ones. Data sets are opened and worlds simulated, but nothing is fitted.
    """
    from towpath.experiments.paper.forecast import forecast
    from towpath.experiments.result_store import open_store

    rows = forecast(_plans(names, options, output), open_store(options.out, options.code))
    fits, stored, hours = (sum(getattr(row, name) for row in rows) for name in ("fits", "stored", "hours"))
    result = {
        "fits": fits,
        "stored": stored,
        "missing": fits - stored,
        "hours": hours,
        "wall_hours": hours / options.jobs,
        "experiments": [row.to_json() for row in rows],
    }
    columns = ("experiment", "data", "fits", "stored", "missing", "hours", "measured")
    lines = [tuple(row.to_json()[name] for name in columns) for row in rows]
    lines.append(("all", "", fits, stored, fits - stored, hours, sum(row.measured for row in rows)))
    output.show(result, Listing(f"Processor hours, {options.jobs} at a time", columns, lines))


def run(names: Names, options: PaperOptions, output: Output) -> None:
    """Run tables and figures: fit what is missing, then write page, Markdown, CSV and LaTeX.

    Every table or figure has a folder for each data set. Stored results are never computed again, whichever
    table they were made for, and several processes may share one folder.
    """
    from towpath.experiments.paper.run import fit_all

    plans = _plans(names, options, output)
    for one in plans:
        one.write(options.out)
    jobs = [job for one in plans for job in one.jobs]
    try:
        with output.progress("Fitting", len({job.name for job in jobs})) as step:
            fit_all(jobs, options.jobs, lambda status: step(_line(status)))
    except KeyboardInterrupt:
        raise Interrupted(stopped(options.out)) from None
    _render([options.out / one.record.folder for one in plans], output)


def _plans(names: list[str], options: PaperOptions, output: Output) -> "list[Plan]":
    """One plan for each table or figure and data set; what cannot be is said before anything is computed."""
    use_threads(1)
    from towpath.experiments.paper.run import plan
    from towpath.experiments.result_store import refuse_earlier
    from towpath.files import refuse_unwritable

    experiments = _selected(names, options)
    refuse_unwritable(options.out / "results")
    refuse_earlier(options.out)
    with output.progress("Opening", None) as step:
        return [plan(one, _config(one, options), step) for one in experiments]


@dataclass(frozen=True)
class ReproduceOptions:
    """Which seed, and where data, published results and the new one are."""

    results: Annotated[Path, typer.Option(metavar="DIR", help="The folder of published results.")] = Path(
        "docs/results"
    )
    seed: Annotated[int, typer.Option(min=0, help="The seed of the fit.")] = 0
    data_dir: Annotated[
        Path | None, typer.Option(envvar="TOWPATH_DATA", help="Where local copies of built-in datasets lie.")
    ] = None
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the result and worlds.")] = Path(
        "reproduced"
    )


CellName = Annotated[
    str, typer.Argument(metavar="FOLDER/COLUMN", help="A published column, such as table-1-ml-1m/DT-MCF.")
]


def reproduce(cell: CellName, options: ReproduceOptions, output: Output) -> None:
    """Compute one cell of a published table again, and say whether it falls into the published interval.

    The recipe is the published one. The interval is where one more seed is expected in 95 of 100 cases.
    """
    use_threads(1)
    from towpath.experiments.paper.reproduce import read_cell, reproduce
    from towpath.experiments.paper.run import PaperConfig

    published = read_cell(cell, options.results)
    config = PaperConfig(out=options.out, data_dir=options.data_dir)
    with output.working(f"Fitting {published.column} on {published.benchmark}"):
        again = reproduce(published, options.seed, config)
    inside = all(one.inside for one in again)
    result = {
        "cell": cell,
        "seed": options.seed,
        "inside": inside,
        "measures": [
            {"measure": one.measure, "value": one.value, "inside": one.inside, **one.published.to_json()}
            for one in again
        ],
    }
    columns = ("measure", "value", "published", "low", "high", "")
    rows = [
        (
            one.measure, one.value, one.published.mean, one.published.low, one.published.high,
            "inside" if one.inside else "outside",
        )
        for one in again
    ]  # fmt: skip
    verdict = "falls" if inside else "does not fall"
    output.show(
        result, Listing(f"{cell}, seed {options.seed}, {verdict} into the published intervals", columns, rows)
    )


def render(folder: PaperFolder, output: Output) -> None:
    """Write the pages of all runs in a folder again, from stored results; nothing is fitted."""
    from towpath.experiments.paper.record import runs_in

    _render(runs_in(folder), output)


def _selected(names: list[str], options: PaperOptions) -> "list[Experiment]":
    from towpath.experiments.paper.catalogue import ALL, EXPERIMENTS, experiment_named
    from towpath.experiments.paper.experiment import by_data, quick_version, restrict

    wanted = list(EXPERIMENTS) if names == [ALL] else list(dict.fromkeys(names))
    experiments = []
    for name in wanted:
        one = experiment_named(name)
        one = quick_version(one) if options.quick else one
        experiments += by_data(restrict(one, options.data or (), options.columns or ()))
    return experiments


def _config(experiment: "Experiment", options: PaperOptions) -> "PaperConfig":
    from towpath.experiments.paper.run import PaperConfig

    return PaperConfig(
        out=options.out,
        seeds=tuple(seeds_in(options.seeds)) if options.seeds else (),
        jobs=options.jobs,
        data_dir=options.data_dir,
        tuned=options.tuned,
        settings=parse_settings(options.set),
        code=options.code,
        quick=options.quick,
        command=_command(experiment, options),
    )


def _command(experiment: "Experiment", options: PaperOptions) -> str:
    """The command that repeats the page; folders are left for the reader to fill in."""
    words = ["towpath", "paper", "run", experiment.name, *(["--quick"] if options.quick else [])]
    words += ["--seeds", options.seeds] if options.seeds else []
    for option, values in (
        ("--data", experiment.benchmarks),
        ("--column", options.columns),
        ("--set", options.set),
    ):
        words += [word for value in values or () for word in (option, value)]
    words += ["--tuned", "TUNED"] if options.tuned else []
    words += ["--jobs", str(options.jobs), "--data-dir", "DATA", "--out", "DIR"]
    return shlex.join(words)


def _line(status: "JobStatus") -> str:
    job = status.job
    state = f"failed: {status.reason}" if status.state == "failed" else status.state
    return f"{job.location.name}, {job.spec.label}, seed {job.spec.recipe.seed}: {state}"


def _render(folders: list[Path], output: Output) -> None:
    from towpath.reports.paper_page import read_results, to_json, write_results

    shown: list[dict[str, Any]] = []
    rows = []
    for folder in folders:
        with output.working(f"Writing {folder.name}"):
            results = read_results(folder)
            page, *_ = write_results(results, folder)
        shown.append(to_json(results) | {"page": str(page)})
        rows += [(v.outcome, v.benchmark, v.claim) for v in results.verdicts]
        output.say(f"The page is {page}")
    output.show({"experiments": shown}, Listing("Claims of the paper", ("outcome", "data", "claim"), rows))


paper_app = typer.Typer(help="The paper's tables and figures, one command each.")
paper_app.command("list")(spread(list_experiments))
paper_app.command("plan")(spread(plan))
paper_app.command("run")(spread(run, shares_out=True))  # several processes may share the work
paper_app.command("render")(spread(render))
paper_app.command("reproduce")(spread(reproduce))
