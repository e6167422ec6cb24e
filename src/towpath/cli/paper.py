"""towpath paper: the tables and figures of the paper, one command each."""

import shlex
from dataclasses import dataclass, replace
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
    from towpath.experiments.paper.searches import PaperSearch

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
        typer.Option(
            metavar="DIR",
            help="Use the best settings of towpath tune: a folder of its folders; by default tuned in --out.",
        ),
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
    any_code: Annotated[
        bool,
        typer.Option(
            "--any-code",
            help="Use stored results of other versions of the code too, instead of computing them again.",
        ),
    ] = False

    @property
    def tuned_folder(self) -> Path | None:
        """The folder of searches: the one that was named, or that of the results if there is one."""
        from towpath.experiments.paper.searches import TUNED

        own = self.out / TUNED
        return self.tuned or (own if own.is_dir() else None)


def list_experiments(output: Output) -> None:
    """List the tables and figures, and what each of them fits."""
    from towpath.experiments.paper.catalogue import EXPERIMENTS
    from towpath.models.registry import depends_on_seed

    rows = []
    for one in EXPERIMENTS.values():
        counted = [
            one.seeds_of(column) if depends_on_seed(recipe.model) else 1
            for benchmark in one.benchmarks
            for column, recipe in one.columns_on(benchmark).items()
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
    published ones. Rows called tune are the searches of towpath paper tune. Data sets are opened and worlds
    simulated, but nothing is fitted.
    """
    from towpath.experiments.paper.forecast import forecast, forecast_searches
    from towpath.experiments.result_store import open_store

    store = open_store(options.out, options.code)
    plans = _plans(names, options, output)
    rows, searches = forecast(plans, store), forecast_searches(_searches(names, options), plans, store)
    fits, stored, hours = (sum(getattr(row, name) for row in rows) for name in ("fits", "stored", "hours"))
    result = {
        "fits": fits,
        "stored": stored,
        "missing": fits - stored,
        "hours": hours,
        "wall_hours": hours / options.jobs,
        "search_hours": sum(row.hours for row in searches),
        "code": store.code,
        "earlier": sum(row.earlier for row in rows),
        "experiments": [row.to_json() for row in rows],
        "searches": [row.to_json() for row in searches],
    }
    every = [*searches, *rows]
    total = sum(row.hours for row in every)
    # Short enough for a terminal of 80 columns, so hours are written out; --json has the rest.
    lines: list[tuple[object, ...]] = [
        (row.folder, row.fits, row.stored, row.earlier, f"{row.hours:.2f}") for row in every
    ]
    counts = (sum(getattr(row, name) for row in every) for name in ("fits", "stored", "earlier"))
    lines.append(("all", *counts, f"{total:.2f}"))
    wall = f"{total / options.jobs:.1f} hours with --jobs {options.jobs}"
    title = f"About {total:.1f} processor hours are missing: {wall}"
    output.show(result, Listing(title, ("page", "fits", "stored", "earlier", "hours"), lines))


def tune(names: Names, options: PaperOptions, output: Output) -> None:
    """Tune the columns of tables and figures by validation, with as many candidates for each.

    Every search has a folder in tuned below --out, which towpath paper run reads. Finished searches are not
    made again. A simulation takes the settings of the data set that it is made from.
    """
    use_threads(1)
    from towpath.experiments.paper.searches import run_searches

    searches = _searches(names, options)
    missing = [one for one in searches if not one.finished]
    try:
        with output.progress("Searching", len(missing)) as step:
            for one in run_searches(missing, options.jobs):
                step(f"{one.location.name}, {one.column}")
    except KeyboardInterrupt:
        raise Interrupted(stopped(options.out)) from None
    found = [(one, *one.chosen()) for one in searches]
    rows = [
        (
            one.location.name, one.column, f"{100 * score:.2f}",
            " ".join(f"{name}={value}" for name, value in chosen.items()),
        )
        for one, chosen, score in found
    ]  # fmt: skip
    result = {
        "searches": [
            {
                "data": one.location.name, "column": one.column, "folder": str(one.folder),
                "validation_hit": score, "chosen": chosen,
            }
            for one, chosen, score in found
        ]
    }  # fmt: skip
    output.show(
        result, Listing("Best by validation Hit@10 (full)", ("data", "column", "Hit", "chosen"), rows)
    )


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
    from towpath.experiments.paper.earlier import EarlierResults, earlier_results
    from towpath.experiments.paper.run import plan
    from towpath.experiments.result_store import open_store, refuse_earlier
    from towpath.files import refuse_unwritable

    experiments = _selected(names, options)
    refuse_unwritable(options.out / "results")
    refuse_earlier(options.out)
    earlier = earlier_results(open_store(options.out, options.code)) if options.any_code else EarlierResults()
    # Data sets are large, so that all experiments on one come together.
    opened = list(dict.fromkeys(one.benchmarks for one in experiments))
    order = sorted(range(len(experiments)), key=lambda place: opened.index(experiments[place].benchmarks))
    plans = {}
    with output.progress("Opening", None) as step:
        for place in order:
            one = experiments[place]
            plans[place] = plan(one, replace(_config(one, options), earlier=earlier), step)
    return [plans[place] for place in range(len(experiments))]


def _searches(names: list[str], options: PaperOptions) -> "list[PaperSearch]":
    """The searches for these tables and figures; quick runs are not tuned."""
    from towpath.experiments.paper.searches import searches_of

    if options.quick:
        return []
    return searches_of(_selected(names, options), options.out, options.data_dir)


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
        found = reproduce(published, options.seed, config)
    again = found.measures
    inside = all(one.inside for one in again)
    result = {
        "cell": cell,
        "seed": options.seed,
        "inside": inside,
        "note": found.note,
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
    if found.note:
        output.say(found.note)
    output.show(
        result, Listing(f"{cell}, seed {options.seed}, {verdict} into the published intervals", columns, rows)
    )


def render(folder: PaperFolder, output: Output) -> None:
    """Write the pages of all runs in a folder again, from stored results; nothing is fitted."""
    from towpath.experiments.paper.record import runs_in

    _render(runs_in(folder), output)


def _selected(names: list[str], options: PaperOptions) -> "list[Experiment]":
    from towpath.experiments.paper.catalogue import ALL, EXPERIMENTS, experiment_named
    from towpath.experiments.paper.experiment import (
        by_data,
        on_any_of,
        quick_version,
        restrict,
        select_columns,
    )

    wanted = [experiment_named(name) for name in (EXPERIMENTS if names == [ALL] else dict.fromkeys(names))]
    wanted = [quick_version(one) if options.quick else one for one in wanted]
    if names == [ALL] and options.data:
        wanted = on_any_of(options.data, wanted)
    else:
        wanted = [restrict(one, options.data or ()) for one in wanted]
    return [part for one in wanted for part in by_data(select_columns(one, options.columns or ()))]


def _config(experiment: "Experiment", options: PaperOptions) -> "PaperConfig":
    from towpath.experiments.paper.run import PaperConfig

    return PaperConfig(
        out=options.out,
        seeds=tuple(seeds_in(options.seeds)) if options.seeds else (),
        jobs=options.jobs,
        data_dir=options.data_dir,
        tuned=options.tuned_folder,
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
    words += ["--tuned", "TUNED"] if options.tuned_folder else []
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
paper_app.command("tune")(spread(tune, shares_out=True))
paper_app.command("run")(spread(run, shares_out=True))  # several processes may share the work
paper_app.command("render")(spread(render))
paper_app.command("reproduce")(spread(reproduce))
